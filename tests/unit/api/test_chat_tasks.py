"""What chat interfaces ask on their own is answered from its words; what only looks like it is a question."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.api.chat.replies import task_completion
from orchestrator.api.chat.request import ChatRequest
from orchestrator.api.chat.tasks import task_of
from posology.published.chat import ChatCompletion, ChatMessage, ChatTask

QUESTION = "Does low-dose aspirin lower the risk of pre-eclampsia?"
TITLE = "Low-dose Aspirin Lower Risk Pre-eclampsia"
HISTORY = f"<chat_history>\nUSER: {QUESTION}\nASSISTANT: It does. [[1]](<https://x>)\nUSER: And salt?\n</chat_history>"
TALK = f"User: {QUESTION}\nAI: It does."
SCHEMA = {
    "type": "object",
    "properties": {"language": {"type": "string"}, "title": {"type": "string"}},
}


def webui(first: str, output: str = "", history: str = HISTORY) -> str:
    """Return a prompt in Open WebUI's form."""
    return f"### Task:\n{first} Some more.\n### Guidelines:\n- Be good.\n### Output:\n{output}\n### Chat History:\n{history}"


def request(text: Any, **more: Any) -> ChatRequest:
    messages = text if isinstance(text, list) else [{"role": "user", "content": text}]
    return ChatRequest.model_validate_json(
        json.dumps({"model": "posology", "messages": messages} | more)
    )


def completed(text: Any, **more: Any) -> ChatCompletion:
    asked = request(text, **more)
    found = task_of(asked)
    assert found is not None
    return task_completion(asked, found, name="chat_1", created=0)


def said(text: Any, **more: Any) -> ChatMessage:
    return completed(text, **more).choices[0].message


JSON = 'JSON format: { "title": "your title" }'
TITLES = [
    webui("Generate a concise, 3-5 word title with an emoji summarizing the chat history.", JSON),
    webui("Generate a concise, 2-4 word title for it.", JSON),
    # before the heading was introduced
    f"Create a concise, 3-5 word title with an emoji.\n{JSON}\n\n{HISTORY}",
]


@pytest.mark.parametrize("prompt", TITLES)
def test_a_title_is_made_of_the_words_of_the_question(prompt: str) -> None:
    assert json.loads(said(prompt).content or "") == {"title": TITLE}
    system = {"role": "system", "content": "Be kind."}
    parts = {"role": "user", "content": [{"type": "text", "text": prompt}]}
    assert json.loads(said([system, parts]).content or "") == {"title": TITLE}


def test_a_title_is_text_where_text_is_asked_for() -> None:
    asked = webui("Generate a concise, 3-5 word title.", "Return the title alone.")
    assert said(asked).content == TITLE


@pytest.mark.parametrize(
    ("prompt", "reply"),
    [
        (webui("Generate 1-3 broad tags categorizing the chat history."), {"tags": ["Health", "pre-eclampsia", "low-dose"]}),
        (webui("Suggest 3-5 relevant follow-up questions or prompts."), {"follow_ups": []}),
        (webui("Analyze the chat history to determine the necessity of generating search queries, in it."), {"queries": [QUESTION]}),
        (webui("Generate 1-3 broad tags.", history="<chat_history>\n</chat_history>"), {"tags": ["General"]}),
    ],
)  # fmt: skip
def test_lists_have_the_form_that_open_webui_reads(prompt: str, reply: dict[str, Any]) -> None:
    assert json.loads(said(prompt).content or "") == reply


@pytest.mark.parametrize(
    "prompt",
    [
        f"Provide a concise, 5-word-or-less title for the conversation. Only the title.\n\nConversation:\n{TALK}",
        f"Provide a concise, 5-word-or-less title for the conversation.\n\nConversation:\n{QUESTION}\nIt does.",
        f'Please generate a concise, 5-word-or-less title for the conversation.\n||>User:\n"{QUESTION}"\n||>Response:\n"It does."\n\n||>Title:',
        f"Please generate a concise title (max 40 characters) for a conversation that starts with:\n{TALK}\n\nTitle:",
        f"Analyze this conversation and provide:\n1. The detected language of the conversation\n2. A concise title\n\n{TALK}",
    ],
)
def test_librechat_gets_its_title(prompt: str) -> None:
    assert said(prompt).content == TITLE
    # older versions have no other message
    assert said([{"role": "system", "content": prompt}]).content == TITLE
    shape = {"type": "json_schema", "json_schema": {"name": "extract", "schema": SCHEMA}}
    wanted = {"language": "English", "title": TITLE}
    assert json.loads(said(prompt, response_format=shape).content or "") == wanted
    assert json.loads(said(prompt, response_format={"type": "json_object"}).content or "") == {
        "title": TITLE
    }
    tool = {"type": "function", "function": {"name": "extract", "parameters": SCHEMA}}
    for choice in ({"type": "function", "function": {"name": "extract"}}, "required"):
        message = said(prompt, tools=[tool], tool_choice=choice)
        (call,) = message.tool_calls
        assert (message.content, call.function.name) == (None, "extract")
        assert json.loads(call.function.arguments) == wanted
    # one that may be called is not
    assert said(prompt, tools=[tool], tool_choice="auto").content == TITLE


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("title_generation", ChatTask.TITLE),
        ("TASKS.TAGS_GENERATION", ChatTask.TAGS),
        ("follow_up_generation", ChatTask.FOLLOW_UPS),
    ],
)
def test_a_field_names_the_task_of_a_prompt_of_ones_own(name: str, task: ChatTask) -> None:
    for more in ({"metadata": {"task": name}}, {"task": name}):
        for text in (f"Name this talk:\n{HISTORY}", f"Name this talk:\n{TALK}"):
            found = task_of(request(text, **more))
            assert found is not None
            assert (found.task, found.question) == (task, QUESTION)
    assert said("Name it.", task="title_generation").content == "Literature question"


@pytest.mark.parametrize(
    "limit", [{"max_tokens": 5}, {"max_completion_tokens": 10.0}, {"max_tokens": 1}]
)
@pytest.mark.parametrize("text", ["ping", "Ping", " ping\n"])
def test_a_test_of_the_connection_is_answered(text: str, limit: dict[str, Any]) -> None:
    asked = ChatRequest.model_validate(
        {"model": "posology", "messages": ({"role": "user", "content": text},)}
        | {name: int(value) for name, value in limit.items()}
    )
    found = task_of(asked)
    assert found is not None
    assert found.task is ChatTask.PROBE


def test_nothing_is_spent() -> None:
    found = completed("ping", max_tokens=5)
    assert found.choices[0].message.content == "pong"
    assert found.choices[0].finish_reason == "stop"
    assert found.usage.total_tokens == 0
    outcome = found.posology.model_dump(mode="json")
    assert outcome.pop("task") == "probe"
    assert {name: value for name, value in outcome.items() if value is not None} == {
        "cost_usd": "0",
        "charged_usd": "0",
        "usage_complete": True,
        "ignored": [],
    }
    # most clients know no empty list of calls
    assert "tool_calls" not in found.model_dump(mode="json")["choices"][0]["message"]


@pytest.mark.parametrize(
    ("text", "more"),
    [
        (QUESTION, {}),
        ("ping", {}),
        ("ping", {"max_tokens": 64}),
        ("ping test accuracy", {"max_tokens": 5}),
        (QUESTION, {"max_tokens": 5}),
        (f"What does '### Task:\nGenerate a concise, 3-5 word title' do?\n{HISTORY}", {}),
        (f"{TITLES[0]}\nIs this prompt known in the literature?", {}),
        (webui("Respond to the user query using the provided context."), {}),
        (webui("Which title and tags do trials of aspirin have?"), {}),
        ("### Task:\nGenerate a concise, 3-5 word title of trials on salt.", {}),
        ("Provide a concise, 5-word-or-less title for the conversation on salt in trials.", {}),
        ("Analyze this conversation and provide evidence on salt.", {}),
        ("Suggest 3-5 relevant follow-up questions on aspirin.", {}),
        (QUESTION, {"metadata": {"task": "something_else"}}),
        (QUESTION, {"metadata": "title_generation", "task": 7}),
        ([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}, {"role": "user", "content": TITLES[0]}], {}),
        ([{"role": "user", "content": [{"type": "text", "text": "ping"}, {"type": "image_url"}]}], {"max_tokens": 5}),
        ([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "ping"}], {"max_tokens": 5}),
        ([{"role": "assistant", "content": "ping"}], {"max_tokens": 5}),
    ],
)  # fmt: skip
def test_what_only_looks_like_one_is_a_question(text: Any, more: dict[str, Any]) -> None:
    assert task_of(request(text, **more)) is None


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("What is it?", "What Is It"),
        ("mRNA vaccines and COVID-19 in the elderly", "mRNA Vaccines COVID-19 Elderly"),
        ("“Is **salt** (NaCl) harmful?”", "Salt NaCl Harmful"),
        ("Senkt Aspirin das Risiko?\nUnd Salz?", "Senkt Aspirin Das Risiko Und"),
        ("\x1b[31msalt\x00 drops", "31msalt Drops"),
        ("", "Literature question"),
    ],
)  # fmt: skip
def test_titles_are_words_alone(question: str, title: str) -> None:
    prompt = f"Provide a concise, 5-word-or-less title for the conversation.\nConversation:\nUser: {question}\nAI: Yes."
    assert said(prompt).content == title
