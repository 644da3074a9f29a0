"""Whose an update is, and where it belongs. `talk` does what it asks for."""

from __future__ import annotations

from quarterdeck.fronts.telegram.chats import Place
from quarterdeck.fronts.telegram.jobs import Job, Services
from quarterdeck.fronts.telegram.types import CallbackQuery, GenerationStopped, Message, Update


def job_of(services: Services, update: Update, *, begun: bool = False) -> Job | None:
    """The job of an update; None for one that asks for nothing."""
    match update:
        case Update(message=Message() as message) | Update(edited_message=Message() as message):
            if message.sender is None:
                return None
            return Job(
                services,
                update_id=update.update_id,
                place=Place(chat=message.chat.id, thread=message.thread),
                user=message.sender.id,
                message=message,
                replied=_replied_message(message),
                private=message.chat.private,
                begun=begun,
            )
        case Update(callback_query=CallbackQuery(message=Message() as shown) as query):
            return Job(
                services,
                update_id=update.update_id,
                place=Place(chat=shown.chat.id, thread=shown.thread),
                user=query.sender.id,
                replied=shown,
                private=shown.chat.private,
                begun=begun,
            )
        case Update(stopped_message_generation=GenerationStopped() as stopped):
            # Drafts are in private chats only, which have the number of their person.
            place = Place(chat=stopped.chat.id, thread=stopped.message_thread_id)
            return Job(
                services, update_id=update.update_id, place=place, user=stopped.chat.id, begun=begun
            )
        case _:
            return None


def _replied_message(message: Message) -> Message | None:
    """The message that this one replies to. The first message of a topic is no reply."""
    replied = message.reply_to_message
    if replied is None or replied.forum_topic_created is not None:
        return None
    return replied
