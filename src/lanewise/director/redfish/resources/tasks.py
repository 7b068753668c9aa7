"""Tasks: the changes of the pool that run or have run, and the monitors that clients poll."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lanewise.director.records import Action, Health, ProblemKind, Task, TaskState
from lanewise.director.redfish import uris
from lanewise.director.redfish.etags import json_text
from lanewise.director.redfish.messages import MESSAGE_TYPE, RedfishError, RedfishMessage
from lanewise.director.redfish.moments import moment
from lanewise.director.redfish.resource import Call, Json, Reply, ResourceType, TextDocument
from lanewise.director.redfish.resources.common import collection, status
from lanewise.director.redfish.uris import ROOT, link, links, not_there
from lanewise.errors import UnknownName

_SERVICE = f"{ROOT}/TaskService"
_SHOWN = 1000  # newest tasks in the collection
_STATES = {TaskState.RUNNING: "Running", TaskState.COMPLETED: "Completed", TaskState.EXCEPTION: "Exception"}


def find_task(call: Call, name: str) -> Task:
    """The task of that name; RedfishError 404 otherwise."""
    try:
        return call.service.director.task(name)
    except UnknownName:
        raise not_there(call.path) from None


def _task_service(call: Call) -> Json:
    return {
        "Id": "TaskService",
        "Name": "Tasks",
        "DateTime": moment(call.service.clock()),
        "ServiceEnabled": True,
        "Status": status(),
        "CompletedTaskOverWritePolicy": "Oldest",
        "LifeCycleEventOnTaskStateChange": False,
        "Tasks": link(f"{_SERVICE}/Tasks"),
    }


def task_body(call: Call, task: Task) -> Json:
    """A task as its resource says it."""
    health = Health.OK if task.state is not TaskState.EXCEPTION else Health.CRITICAL
    made = []
    if task.action is Action.COMPOSE and task.composition in call.inventory.composed:
        made = [uris.system(task.composition)]
    body: Json = {
        "Id": task.name,
        "Name": f"{task.action} {task.composition}",
        "TaskState": _STATES[task.state],
        "TaskStatus": str(health),
        "StartTime": moment(task.created),
        "PercentComplete": 100 if task.state is TaskState.COMPLETED else task.percent,
        "TaskMonitor": f"{ROOT}/TaskMonitors/{task.name}",
        "HidePayload": True,
        "Messages": _messages(task),
        "Links": {"CreatedResources": links(made)},
    }
    return {**body, "EndTime": moment(task.changed)} if task.ended else body


def _messages(task: Task) -> list[dict[str, Any]]:
    kind = "TaskEvent.1.0.TaskProgressChanged"
    said = [
        {
            "@odata.type": MESSAGE_TYPE,
            "MessageId": kind,
            "Message": text,
            "MessageArgs": [task.name, str(task.percent)],
            "MessageSeverity": "OK",
            "Resolution": "None.",
        }
        for text in task.messages
    ]
    return [*said, problem_message(task).as_json()] if task.problem else said


def problem_message(task: Task) -> RedfishMessage:
    """Why a task failed, as a message."""
    assert task.problem is not None
    problem = task.problem
    key = "Base.ResourceInUse" if problem.kind is ProblemKind.BUSY else "Base.OperationFailed"
    oem = {"Task": uris.task(task.name), **({"Device": problem.device} if problem.device else {})}
    if problem.holders:
        oem["Holders"] = "; ".join(map(str, problem.holders))
    return RedfishMessage(key, text=problem.cause, oem=oem)


_PROBLEM_STATUS = {ProblemKind.BUSY: 409, ProblemKind.RETRYABLE: 503, ProblemKind.GONE: 409}


def task_reply(call: Call, task: Task, finished: Callable[[], Reply]) -> Reply:
    """What a change answers: `finished` if its task has ended, 202 with the task's monitor if it runs on.

    RedfishError with the reason if the task failed.
    """
    wait = 0.0 if "respond-async" in call.headers.get("prefer", "") else call.service.settings.answer_seconds
    if not task.ended:
        task = call.service.director.wait(task.name, wait)
    if not task.ended:
        body = {"@odata.id": uris.task(task.name), "@odata.type": TASK.odata_type, **task_body(call, task)}
        return Reply(202, body, {"Location": f"{ROOT}/TaskMonitors/{task.name}", "Retry-After": "1"})
    if task.problem is not None:
        raise RedfishError(_PROBLEM_STATUS.get(task.problem.kind, 500), problem_message(task))
    return finished()


def _task(call: Call) -> Json:
    return task_body(call, find_task(call, call.names["task"]))


def _monitor(call: Call) -> TextDocument:
    """202 with the task while it runs, then what the request would have answered: the task, or why it failed."""
    task = find_task(call, call.names["task"])
    if task.problem is not None:
        raise RedfishError(_PROBLEM_STATUS.get(task.problem.kind, 500), problem_message(task))
    body = task_body(call, task)
    text = json_text({"@odata.id": uris.task(task.name), "@odata.type": TASK.odata_type, **body})
    if not task.ended:
        headers = {"Location": f"{ROOT}/TaskMonitors/{task.name}", "Retry-After": "1"}
        return TextDocument(text, status=202, headers=headers)
    made = body["Links"]["CreatedResources"]
    return TextDocument(text, headers={"Location": made[0]["@odata.id"]} if made else {})


TASK = ResourceType(f"{_SERVICE}/Tasks/{{task}}", "Task.v1_7_4", _task, live=True)
TYPES = (
    ResourceType(_SERVICE, "TaskService.v1_3_0", _task_service, live=True, volatile=frozenset({"DateTime"})),
    collection(
        f"{_SERVICE}/Tasks",
        "TaskCollection",
        "Tasks",
        lambda call: [uris.task(task.name) for task in call.service.director.tasks()[-_SHOWN:]],
        live=True,
    ),
    TASK,
    ResourceType(f"{ROOT}/TaskMonitors/{{task}}", document=_monitor, slow=True),
)
