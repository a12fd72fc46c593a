"""The releases that have an env plugin."""
from gvhost import *
from host_decisions import check_release

for release in NEW:
    check_release(release)
done()
