"""By preload, releases up to 2.23."""
from gvhost import *
from host_decisions import check_release

for release in OLD[:5]:
    check_release(release)
done()
