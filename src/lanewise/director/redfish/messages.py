"""Messages of Redfish answers: the identifiers are those of DMTF's registries, the words are ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

BASE = "Base.1.22"
COMPOSITION = "Composition.1.1"
MESSAGE_TYPE = "#Message.v1_3_0.Message"

# Identifier: (severity, sentence, what to do). {0}, {1} are the arguments that the registry defines for it.
_WORDS: Mapping[str, tuple[str, str, str]] = {
    "Base.Success": ("OK", "Done.", "None."),
    "Base.Created": ("OK", "The resource was created.", "None."),
    "Base.NoOperation": ("Warning", "The request changes nothing.", "Send at least one property to change."),
    "Base.PropertyUnknown": ("Warning", "This resource has no property {0}.", "Leave it out."),
    "Base.PropertyDuplicate": ("Warning", "Property {0} is in the body twice.", "Send it once."),
    "Base.PropertyNotWritable": ("Warning", "Property {0} cannot be written.", "Leave it out."),
    "Base.PropertyMissing": ("Warning", "Property {0} is missing.", "Send it."),
    "Base.PropertyValueTypeError": ("Warning", "Value {0} of property {1} has the wrong type.", "Send the right type."),
    "Base.PropertyValueFormatError": ("Warning", "Value {0} of property {1} has the wrong form.", "Correct it."),
    "Base.PropertyValueNotInList": ("Warning", "Property {1} cannot be {0}.", "Choose one of the allowed values."),
    "Base.PropertyValueOutOfRange": ("Warning", "Value {0} of property {1} is out of range.", "Choose one in range."),
    "Base.PropertyValueError": ("Warning", "The value of property {0} was refused.", "Send another value."),
    "Base.PropertyValueConflict": ("Warning", "Property {0} does not go with {1}.", "Leave one of them out."),
    "Base.StringValueTooLong": ("Warning", "The text '{0}' is longer than {1} characters.", "Shorten it."),
    "Base.ArraySizeTooLong": ("Warning", "Array {0} has more than {1} elements.", "Send fewer."),
    "Base.MalformedJSON": ("Critical", "The body is not JSON.", "Send a JSON object."),
    "Base.UnrecognizedRequestBody": ("Warning", "The body is not a JSON object.", "Send a JSON object."),
    "Base.EmptyJSON": ("Warning", "The body is an empty object.", "Send at least one property."),
    "Base.PayloadTooLarge": ("Critical", "The body is too large for this service.", "Send a smaller body."),
    "Base.HeaderInvalid": ("Critical", "Header {0} was refused.", "Correct the header."),
    "Base.HeaderMissing": ("Critical", "Header {0} is missing.", "Send it."),
    "Base.ActionNotSupported": ("Critical", "There is no action {0} at this address.", "Read the resource's Actions."),
    "Base.ActionParameterMissing": ("Critical", "Action {0} needs parameter {1}.", "Send it."),
    "Base.ActionParameterUnknown": ("Warning", "Action {0} has no parameter {1}.", "Leave it out."),
    "Base.ActionParameterValueTypeError": (
        "Warning", "Value {0} of parameter {1} of action {2} has the wrong type.", "Send the right type."),
    "Base.ActionParameterValueFormatError": (
        "Warning", "Value {0} of parameter {1} of action {2} has the wrong form.", "Correct it."),
    "Base.ActionParameterValueNotInList": (
        "Warning", "Parameter {1} of action {2} cannot be {0}.", "Choose one of the allowed values."),
    "Base.ActionParameterValueError": ("Warning", "The value of parameter {0} of {1} was refused.", "Change it."),
    "Base.QueryParameterValueTypeError": ("Warning", "Query parameter {1} cannot be {0}.", "Send the right type."),
    "Base.QueryParameterValueFormatError": ("Warning", "Query parameter {1} cannot be {0}.", "Correct it."),
    "Base.QueryParameterOutOfRange": ("Warning", "Query parameter {1} is {0}, not in {2}.", "Choose one in range."),
    "Base.QueryNotSupportedOnResource": ("Warning", "This resource takes no query parameters.", "Leave them out."),
    "Base.QueryNotSupportedOnOperation": ("Warning", "Query parameters go with GET only.", "Leave them out."),
    "Base.QueryNotSupported": ("Warning", "The service does not know this query parameter.", "Leave it out."),
    "Base.QueryParameterUnsupported": ("Warning", "The service does not know query parameter {0}.", "Leave it out."),
    "Base.QueryCombinationInvalid": ("Warning", "These query parameters do not go together.", "Send fewer of them."),
    "Base.SessionLimitExceeded": ("Critical", "All sessions are in use.", "Close one, or wait until one expires."),
    "Base.EventSubscriptionLimitExceeded": ("Critical", "All subscriptions are in use.", "Delete one."),
    "Base.ResourceCannotBeDeleted": ("Critical", "This resource cannot be deleted.", "None."),
    "Base.ResourceInUse": ("Warning", "The resource is in use.", "Free it, then try again."),
    "Base.ResourceAlreadyExists": ("Critical", "There is a {0} with {1} {2}.", "Choose another value."),
    "Base.ResourceNotFound": ("Critical", "There is no {0} called {1}.", "Correct the name."),
    "Base.ResourceMissingAtURI": ("Critical", "There is no resource at {0}.", "Follow the links from /redfish/v1/."),
    "Base.InvalidURI": ("Critical", "{0} is no address of this service.", "Correct the address."),
    "Base.CreateFailedMissingReqProperties": ("Critical", "Property {0} is missing.", "Send it."),
    "Base.CreateLimitReachedForResource": ("Critical", "No more of these can be created.", "Delete one."),
    "Base.NoValidSession": ("Critical", "The request has no valid session.", "Log in."),
    "Base.InsufficientPrivilege": ("Critical", "Your role does not allow this.", "Use an account that may."),
    "Base.AccountModified": ("OK", "The account was changed.", "None."),
    "Base.AccountRemoved": ("OK", "The account was removed.", "None."),
    "Base.AccessUnauthorized": ("Critical", "The request needs valid credentials.", "Log in, or send credentials."),
    "Base.AccessForbidden": ("Critical", "The request is forbidden.", "Use an account that may."),
    "Base.AccessDenied": ("Critical", "Access to {0} was refused.", "Wait, then try again with other credentials."),
    "Base.PasswordChangeRequired": ("Critical", "The password must be changed first.", "PATCH Password of {0}."),
    "Base.PasswordComplexityNotMet": ("Critical", "The password is too simple.", "Choose another one."),
    "Base.PasswordIncorrectLength": ("Critical", "The password is too short or too long.", "Choose another one."),
    "Base.RestrictedRole": ("Warning", "Role {0} cannot be used here.", "Choose another role."),
    "Base.PropertyValueResourceConflict": (
        "Warning", "Value {1} of property {0} conflicts with {2}.", "Choose another value."),
    "Base.PreconditionFailed": ("Critical", "The resource is not what If-Match says.", "Read it again, then repeat."),
    "Base.PreconditionRequired": ("Critical", "The request needs an If-Match header.", "Send the resource's ETag."),
    "Base.OperationFailed": ("Warning", "The operation failed.", "See the task, or the server's journal."),
    "Base.OperationTimeout": ("Warning", "The request took too long to arrive.", "Send it again, faster."),
    "Base.OperationNotAllowed": ("Critical", "This method is not allowed here.", "See the Allow header."),
    "Base.ServiceTemporarilyUnavailable": ("Critical", "The service is busy; try again in {0} s.", "Wait."),
    "Base.InternalError": ("Critical", "The service failed to answer.", "See its log; report it if it happens again."),
    "Base.ResourceExhaustion": ("Critical", "There is no more room for {0}.", "Free some, then try again."),
    "Composition.ResourceBlockInUse": ("Warning", "Resource block {0} is in use.", "Choose another one."),
    "Composition.ResourceBlockInvalid": ("Critical", "Resource block {0} cannot be used.", "Choose another one."),
    "Composition.ResourceBlockNotFound": ("Critical", "There is no resource block {0}.", "Correct the name."),
    "Composition.NoResourceMatch": ("Critical", "Nothing fits {0}.", "Ask for less; see the nearest offer."),
    "Composition.EmptyManifest": ("Warning", "The manifest has no stanzas.", "Send at least one."),
    "Composition.UnableToProcessStanzaRequest": (
        "Critical", "Stanza {0} of type {1} could not be processed.", "See the other messages."),
    "Composition.IncompatibleZone": ("Critical", "The blocks are not in one resource zone.", "Choose others."),
    "Composition.SpecifiedResourceAlreadyReserved": ("Critical", "{0} is reserved for {1}.", "Choose another one."),
    "Composition.ConstrainedResourceAlreadyReserved": ("Critical", "What fits {0} is reserved.", "Ask for less."),
}  # fmt: skip
_REGISTRIES = {"Base": BASE, "Composition": COMPOSITION}


@dataclass(frozen=True, slots=True)
class RedfishMessage:
    """One message: the key such as 'Base.PropertyUnknown', its arguments, the properties concerned as JSON pointers.

    `text` replaces our usual sentence, where we know more; `oem` is added under Oem.Lanewise.
    """

    key: str
    arguments: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    text: str = ""
    resolution: str = ""
    oem: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def identifier(self) -> str:
        """The MessageId: registry, major and minor version, key."""
        registry, _, key = self.key.partition(".")
        return f"{_REGISTRIES[registry]}.{key}"

    @property
    def words(self) -> str:
        """The sentence for people."""
        return self.text or _WORDS[self.key][1].format(*self.arguments)

    def as_json(self) -> dict[str, Any]:
        """The message as one element of @Message.ExtendedInfo."""
        severity, _, resolution = _WORDS[self.key]
        form: dict[str, Any] = {
            "@odata.type": MESSAGE_TYPE,
            "MessageId": self.identifier,
            "Message": self.words,
            "MessageArgs": list(self.arguments),
            "MessageSeverity": severity,
            "Resolution": self.resolution or resolution.format(*self.arguments),
        }
        if self.properties:
            form["RelatedProperties"] = [f"#/{name}" for name in self.properties]
        if self.oem:
            form["Oem"] = {"Lanewise": {"@odata.type": "#LanewiseOem.v1_0_0.MessageNote", **self.oem}}
        return form


class RedfishError(Exception):
    """A request was refused: HTTP status, the messages that say why, extra headers."""

    def __init__(self, status: int, *messages: RedfishMessage, headers: Mapping[str, str] | None = None) -> None:
        super().__init__("; ".join(message.words for message in messages))
        self.status = status
        self.messages = messages
        self.headers = dict(headers or {})

    def as_json(self) -> dict[str, Any]:
        """The body of the answer."""
        first = self.messages[0]
        return {
            "error": {
                "code": first.identifier,
                "message": first.words,
                "@Message.ExtendedInfo": [message.as_json() for message in self.messages],
            }
        }


def refusal(status: int, key: str, *arguments: str, prop: str = "", text: str = "", hint: str = "") -> RedfishError:
    """The error of one message; `prop` is the property concerned, as a JSON pointer without its '#/'."""
    return RedfishError(status, RedfishMessage(key, arguments, (prop,) if prop else (), text, hint))
