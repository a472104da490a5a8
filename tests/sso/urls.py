"""The site's addresses as they are where single sign-on is configured."""

from django.urls import include, path

from reviewboard import urls

handler403, handler404, handler500 = urls.handler403, urls.handler404, urls.handler500
urlpatterns = [path("", include("reviewboard.urls_sso")), *urls.urlpatterns]
