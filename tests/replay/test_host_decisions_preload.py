"""By preload, releases from 2.24 on."""
from gvhost import *
from host_decisions import check_release

for release in OLD[5:]:
    check_release(release)
done()
