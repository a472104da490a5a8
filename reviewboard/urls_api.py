from django.urls import path, re_path

from reviewboard.api.app import api, nothing

urlpatterns = [
    path("api/v1/", api.urls),
    # Whatever else stands below it is answered as the API answers, without a page that has to be made.
    re_path(r"^api/", nothing),
]
