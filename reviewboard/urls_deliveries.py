"""Addresses of what goes out to consumers. Included by urls.py."""

from django.urls import path

from reviewboard.views import deliveries, delivery_acts

urlpatterns = [
    path("deliveries/", deliveries.deliveries, name="deliveries"),
    path("deliveries/<int:pk>/", deliveries.delivery, name="delivery"),
    path("deliveries/<int:pk>/replay/", delivery_acts.replay_one, name="delivery_replay"),
    path("deliveries/replay/", delivery_acts.replay_many, name="deliveries_replay"),
    path("deliveries/endpoints/<int:pk>/disable/", delivery_acts.disable, name="endpoint_disable"),
    path("deliveries/endpoints/<int:pk>/enable/", delivery_acts.enable, name="endpoint_enable"),
    path("deliveries/endpoints/<int:pk>/test/", delivery_acts.send_test, name="endpoint_test"),
    path("deliveries/endpoints/<int:pk>/try-now/", delivery_acts.try_now, name="endpoint_try_now"),
    path("deliveries/endpoints/<int:pk>/retire/", delivery_acts.retire, name="endpoint_retire"),
]
