//! The texts of the guides in Korean, by their English ones, for a server that is called `cuebook` as on the page.

/// A text of a guide in Korean; none for what is no text of one.
pub fn korean(english: &str) -> Option<&'static str> {
    let found = TEXTS.iter().find(|(known, _)| *known == english);
    found.map(|(_, korean)| *korean)
}

const TEXTS: &[(&str, &str)] = &[
    // what to do
    (
        "Run once, for all your projects",
        "한 번만 실행하면 모든 프로젝트에서 쓸 수 있습니다",
    ),
    (
        "Or share it with everyone who clones a project, in .mcp.json at its root",
        "또는 프로젝트 루트의 .mcp.json에 넣어 복제하는 모두와 함께 쓰세요",
    ),
    (
        "Settings > Developer > Edit Config opens this file; restart Claude afterwards",
        "Settings > Developer > Edit Config를 누르면 이 파일이 열립니다. 고친 뒤 Claude를 다시 시작하세요",
    ),
    (
        "In .vscode/mcp.json of a workspace, or for all of them (MCP: Open User Configuration) in",
        "작업 영역의 .vscode/mcp.json에, 또는 모든 작업 영역에서 쓰려면(MCP: Open User Configuration) 아래 파일에",
    ),
    (
        "In .cursor/mcp.json of a project, or for all of them in",
        "프로젝트의 .cursor/mcp.json에, 또는 모든 프로젝트에서 쓰려면 아래 파일에",
    ),
    (
        "In the settings (zed: open settings file)",
        "설정 파일에(zed: open settings file)",
    ),
    (
        "In .gemini/settings.json of a project, or for all of them in",
        "프로젝트의 .gemini/settings.json에, 또는 모든 프로젝트에서 쓰려면 아래 파일에",
    ),
    (
        "Or in .gemini/settings.json of a project, or for all of them in",
        "또는 프로젝트의 .gemini/settings.json에, 모든 프로젝트에서 쓰려면 아래 파일에",
    ),
    ("Run once in a project", "프로젝트에서 한 번 실행하세요"),
    (
        "In opencode.json of a project, or for all of them in",
        "프로젝트의 opencode.json에, 또는 모든 프로젝트에서 쓰려면 아래 파일에",
    ),
    (
        "Or in opencode.json of a project, or for all of them in",
        "또는 프로젝트의 opencode.json에, 모든 프로젝트에서 쓰려면 아래 파일에",
    ),
    (
        "opencode 2 wants the same entry one level deeper, under mcp.servers",
        "opencode 2에서는 같은 항목을 한 단계 아래인 mcp.servers에 넣습니다",
    ),
    ("Run once", "한 번 실행하세요"),
    (
        "Or in .codex/config.toml of a trusted project, or for all of them in",
        "또는 신뢰하는 프로젝트의 .codex/config.toml에, 모든 프로젝트에서 쓰려면 아래 파일에",
    ),
    (
        "In a workspace, as the file .continue/mcpServers/cuebook.yaml",
        "작업 영역에 .continue/mcpServers/cuebook.yaml 파일로",
    ),
    ("Under extensions in", "아래 파일의 extensions 아래에"),
    (
        "Settings > Tools > AI Assistant > Model Context Protocol (MCP) > Add > As JSON",
        "Settings > Tools > AI Assistant > Model Context Protocol (MCP) > Add > As JSON에",
    ),
    (
        "For Junie, which starts programs only, in .junie/mcp/mcp.json of a project, or for all of them in",
        "프로그램만 실행할 수 있는 Junie는 프로젝트의 .junie/mcp/mcp.json에, 모든 프로젝트에서 쓰려면 아래 파일에",
    ),
    // how a prompt is called up
    (
        "Type / and choose, or write the arguments behind the name in their order:\n\n  /mcp__cuebook__incident-triage INC-9942 payments\n\n`/mcp` shows whether the server is connected.",
        "/를 입력해 고르거나, 이름 뒤에 인수를 차례대로 적습니다.\n\n  /mcp__cuebook__incident-triage INC-9942 payments\n\n서버가 연결되었는지는 `/mcp`로 볼 수 있습니다.",
    ),
    (
        "Click + in the message box, choose cuebook and then the prompt. A form asks for its arguments.",
        "메시지 입력창에서 +를 누르고 cuebook과 프롬프트를 차례로 고릅니다. 인수는 양식으로 묻습니다.",
    ),
    (
        "In the chat, type / and choose:\n\n  /mcp.cuebook.incident-triage\n\nArguments are asked for one by one, and completed as you type.",
        "채팅에서 /를 입력해 고릅니다.\n\n  /mcp.cuebook.incident-triage\n\n인수를 하나씩 물으며, 입력하는 동안 자동 완성됩니다.",
    ),
    (
        "In the chat, type / and choose incident-triage. Settings > MCP shows whether the server is connected.",
        "채팅에서 /를 입력해 incident-triage를 고릅니다. 서버가 연결되었는지는 Settings > MCP에서 볼 수 있습니다.",
    ),
    (
        "In the agent panel, type / and choose a prompt; the value of its one argument follows.\n\nFor a prompt with more arguments, ask the agent:\n\n  Use get_prompt for incident-triage with ticketId INC-9942, and do what it says.",
        "에이전트 패널에서 /를 입력해 프롬프트를 고르고, 이어서 하나뿐인 인수의 값을 적습니다.\n\n인수가 더 있는 프롬프트는 에이전트에게 요청하세요.\n\n  Use get_prompt for incident-triage with ticketId INC-9942, and do what it says.",
    ),
    (
        "Type / and choose; name the arguments, or write them in their order:\n\n  /incident-triage --ticketId=\"INC-9942\" --service=\"payments\"\n\n`/mcp` shows whether the server is connected.",
        "/를 입력해 고릅니다. 인수는 이름을 붙이거나 차례대로 적습니다.\n\n  /incident-triage --ticketId=\"INC-9942\" --service=\"payments\"\n\n서버가 연결되었는지는 `/mcp`로 볼 수 있습니다.",
    ),
    (
        "Type / and choose, or write the arguments behind the name in their order:\n\n  /cuebook:incident-triage INC-9942 payments",
        "/를 입력해 고르거나, 이름 뒤에 인수를 차례대로 적습니다.\n\n  /cuebook:incident-triage INC-9942 payments",
    ),
    (
        "In agent mode, type / and choose incident-triage.\n\nTo have it in every workspace, put the mcpServers part into ~/.continue/config.yaml\n(on Windows %USERPROFILE%\\.continue\\config.yaml).",
        "에이전트 모드에서 /를 입력해 incident-triage를 고릅니다.\n\n모든 작업 영역에서 쓰려면 mcpServers 부분을 ~/.continue/config.yaml에 넣으세요\n(Windows에서는 %USERPROFILE%\\.continue\\config.yaml).",
    ),
    (
        "In a session:\n\n  /prompts --extension cuebook\n  /prompt incident-triage ticketId=INC-9942 service=payments",
        "세션에서:\n\n  /prompts --extension cuebook\n  /prompt incident-triage ticketId=INC-9942 service=payments",
    ),
    (
        "Ask for a prompt by name; the client then calls Cuebook's tools (list_prompts, search_prompts, get_prompt):\n\n  Use cuebook's get_prompt for incident-triage with ticketId INC-9942, and do what it says.",
        "프롬프트를 이름으로 요청하세요. 그러면 클라이언트가 Cuebook의 도구(list_prompts, search_prompts, get_prompt)를 부릅니다.\n\n  Use cuebook's get_prompt for incident-triage with ticketId INC-9942, and do what it says.",
    ),
    // good to know
    (
        "Arguments are split at blanks, and quotes do not hold them together: a value is one word.",
        "인수를 빈칸에서 나누며 따옴표로도 묶을 수 없으므로, 값은 한 단어여야 합니다.",
    ),
    (
        "Values are not completed while you type, and a prompt's title is not shown.",
        "입력하는 동안 값이 자동 완성되지 않고, 프롬프트의 제목도 보이지 않습니다.",
    ),
    (
        "Assistant messages of a prompt arrive as user messages; attached resources arrive as text.",
        "프롬프트의 어시스턴트 메시지는 사용자 메시지로, 첨부한 리소스는 글로 도착합니다.",
    ),
    (
        "The file takes only programs to start, so cuebook bridges to the server.",
        "이 파일에는 실행할 프로그램만 적을 수 있으므로 cuebook이 서버와 이어 줍니다.",
    ),
    (
        "A custom connector (Settings > Connectors) is called from Anthropic's servers, so it reaches a\n  public https address only, never one on your machine or in your network.",
        "사용자 지정 커넥터(Settings > Connectors)는 Anthropic의 서버에서 접속하므로 공개된 https 주소에만 닿고, 내 컴퓨터나 사내망의 주소에는 닿지 않습니다.",
    ),
    (
        "It drops audio and links, so Cuebook sends a line of text with the address instead.",
        "소리와 링크를 버리므로, Cuebook이 대신 주소를 적은 한 줄을 보냅니다.",
    ),
    (
        "After an error of the server's notification stream the list is not refreshed until a restart\n  (MCP: List Servers > Restart).",
        "서버의 알림 스트림에 오류가 난 뒤에는 다시 시작할 때까지(MCP: List Servers > Restart) 목록이 갱신되지 않습니다.",
    ),
    (
        "Prompts with more than one argument are not shown, which most of the starter prompts have.",
        "인수가 둘 이상인 프롬프트는 보이지 않습니다. 시작 예제의 프롬프트 대부분이 그렇습니다.",
    ),
    (
        "It does not open attached resources, so Cuebook puts them into the text.",
        "첨부한 리소스를 열지 않으므로, Cuebook이 글 안에 넣어 보냅니다.",
    ),
    (
        "A changed list of prompts is seen after the server is restarted in the agent panel's settings.",
        "바뀐 프롬프트 목록은 에이전트 패널의 설정에서 서버를 다시 시작해야 보입니다.",
    ),
    (
        "It starts no server in a folder that it was not told to trust.",
        "신뢰한다고 하지 않은 폴더에서는 서버를 시작하지 않습니다.",
    ),
    (
        "It reads one text, so Cuebook puts a prompt's messages and attached resources into one.",
        "글 하나만 읽으므로, Cuebook이 프롬프트의 메시지와 첨부한 리소스를 하나로 합칩니다.",
    ),
    (
        "Where one argument is required, the whole rest of the line is its value.",
        "필수 인수가 하나면 줄의 나머지 전체가 그 값입니다.",
    ),
    (
        "It renders every prompt once at its start, with $1, $2 … for the arguments, and puts your values in\n  afterwards: text that depends on a value (`{% if %}`) is decided by the placeholder.",
        "시작할 때 모든 프롬프트를 인수 자리에 $1, $2 …를 넣어 한 번 렌더링하고 값은 나중에 넣습니다. 그래서 값에 따라 달라지는 글(`{% if %}`)은 자리표시자로 판단합니다.",
    ),
    (
        "It runs !`commands` and reads @files that stand in a prompt. Cuebook makes them inert in argument\n  values; `cuebook check` warns of those in a prompt itself.",
        "프롬프트에 있는 !`명령`을 실행하고 @파일을 읽습니다. 인수 값에 있는 것은 Cuebook이 동작하지 않게 하고, 프롬프트 자체에 있는 것은 `cuebook check`가 경고합니다.",
    ),
    (
        "It shows no MCP prompts, so there are no slash commands; the tools give the same text.",
        "MCP 프롬프트를 보여 주지 않아 슬래시 명령이 없습니다. 도구로 같은 글을 받습니다.",
    ),
    (
        "Arguments you leave out are sent as empty text, which Cuebook takes as absent.",
        "비워 둔 인수를 빈 글로 보내며, Cuebook은 이를 없는 것으로 봅니다.",
    ),
    (
        "It reads text only, so Cuebook puts attached resources into the text.",
        "글만 읽으므로, Cuebook이 첨부한 리소스를 글 안에 넣어 보냅니다.",
    ),
    (
        "Arguments are written key=value; a value with blanks goes in quotes.",
        "인수는 key=value로 적고, 빈칸이 있는 값은 따옴표로 묶습니다.",
    ),
    (
        "Both use a server's tools; prompts do not appear as slash commands.",
        "둘 다 서버의 도구를 쓰며, 프롬프트는 슬래시 명령으로 나타나지 않습니다.",
    ),
    (
        "Older versions of AI Assistant start programs only: use stdio there.",
        "예전 버전의 AI Assistant는 프로그램만 실행하므로 stdio를 쓰세요.",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::connect::{Client, Target, Transport, guide};

    #[test]
    fn every_text_of_every_guide_is_there_and_no_other() {
        let target = Target {
            name: "cuebook".to_owned(),
            url: "http://127.0.0.1:8400/mcp".to_owned(),
            library: None,
            executable: "cuebook".to_owned(),
            transport: Transport::Both,
        };
        let mut said = BTreeSet::new();
        for client in Client::all() {
            let guide = guide(*client, &target);
            said.extend(guide.ways.into_iter().map(|way| way.what));
            said.insert(guide.using);
            said.extend(guide.limits);
        }
        let known: BTreeSet<String> = TEXTS
            .iter()
            .map(|(english, _)| (*english).to_owned())
            .collect();
        assert_eq!(said, known);
        assert_eq!(known.len(), TEXTS.len());
        for (english, korean) in TEXTS {
            let is_korean = korean.chars().any(|c| ('가'..='힣').contains(&c));
            assert!(is_korean, "{english}");
        }
    }
}
