"""One page: a review comes in, is stored, and waits in the queue; both in one transaction."""

import json

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from queue_core.clock import DATABASE_CLOCK
from queue_core.contract import NewTicket, receive
from queue_core.models import Lane
from shop.models import Review


@csrf_exempt
@transaction.atomic
def add(request: HttpRequest) -> JsonResponse:
    text = json.loads(request.body)["text"]
    review = Review.objects.create(text=text)
    lane = Lane.objects.get(name="reviews")
    received = receive(NewTicket("shop", str(review.pk), "1", lane, {"text": text}), clock=DATABASE_CLOCK)
    return JsonResponse({"review": review.pk, "job": received.job.pk, "outcome": received.outcome})


urlpatterns = [path("reviews/", add)]
