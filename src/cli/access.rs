//! `cuebook access`: shows and changes who may do what.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use serde::Deserialize;
use serde_json::{Value, json};

use super::serve::ConfigArgs;
use super::service::Service;
use crate::prompt::visible::visible;

/// What is done with access.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Show people, services and groups, and what each may do where
    Show(ShowArgs),
    /// Give a role, everywhere or at a path
    #[command(after_help = "\
The roles, each with what those before it may do: reader, author (proposes), reviewer, publisher, admin.
WHO is a name, group:NAME, or everyone: all who have a credential.

  cuebook access grant everyone reader
  cuebook access grant group:sre publisher 'prompts/sre/**'
  cuebook access grant ana publisher labels.toml")]
    Grant(GrantArgs),
    /// Take a role away again
    Revoke(GrantArgs),
    /// Add a person, who may do nothing yet unless told
    AddPerson(PersonArgs),
    /// Add a service: a program that has tokens of its own
    AddService(ServiceArgs),
    /// Let nobody in as this person or service any more, at once
    Disable(DisableArgs),
    /// Make a link with which a person chooses a password, once
    Invite(InviteArgs),
    /// Show groups, or change who is in one
    Groups(GroupsArgs),
}

/// Arguments of `cuebook access show`.
#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    config: ConfigArgs,
}

/// Arguments of `cuebook access grant` and `cuebook access revoke`.
#[derive(Debug, clap::Args)]
pub(super) struct GrantArgs {
    /// A name, group:NAME, or everyone
    who: String,
    /// reader, author, reviewer, publisher or admin
    role: String,
    /// A folder such as prompts/sre/**, or a file such as labels.toml
    #[arg(default_value = "**")]
    path: String,
    #[command(flatten)]
    config: ConfigArgs,
}

/// Arguments of `cuebook access add-person`.
#[derive(Debug, clap::Args)]
pub(super) struct PersonArgs {
    /// The name in records
    name: String,
    /// The address of mail that their commits carry
    #[arg(long, value_name = "ADDRESS")]
    email: Option<String>,
    /// They may do everything
    #[arg(long)]
    admin: bool,
    #[command(flatten)]
    config: ConfigArgs,
}

/// Arguments of `cuebook access add-service`.
#[derive(Debug, clap::Args)]
pub(super) struct ServiceArgs {
    /// The name in records
    name: String,
    #[command(flatten)]
    config: ConfigArgs,
}

/// Arguments of `cuebook access disable`.
#[derive(Debug, clap::Args)]
pub(super) struct DisableArgs {
    /// The person or the service
    name: String,
    /// Let them in again
    #[arg(long)]
    undo: bool,
    #[command(flatten)]
    config: ConfigArgs,
}

/// Arguments of `cuebook access invite`.
#[derive(Debug, clap::Args)]
pub(super) struct InviteArgs {
    /// The person
    name: String,
    #[command(flatten)]
    config: ConfigArgs,
}

/// Arguments of `cuebook access groups`.
#[derive(Debug, clap::Args)]
pub(super) struct GroupsArgs {
    /// The group to change
    group: Option<String>,
    /// Put somebody into it; may be repeated
    #[arg(long, value_name = "NAME", requires = "group")]
    add: Vec<String>,
    /// Take somebody out of it; may be repeated
    #[arg(long, value_name = "NAME", requires = "group")]
    remove: Vec<String>,
    #[command(flatten)]
    config: ConfigArgs,
}

#[derive(Deserialize)]
struct People {
    people: Vec<Person>,
}

#[derive(Deserialize)]
struct Person {
    name: String,
    kind: String,
    email: Option<String>,
    disabled: bool,
    groups: Vec<String>,
}

#[derive(Deserialize)]
struct Grants {
    grants: Vec<Grant>,
}

#[derive(Deserialize)]
struct Grant {
    who: String,
    role: String,
    path: String,
}

#[derive(Deserialize)]
struct Groups {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    name: String,
    members: Vec<Member>,
}

#[derive(Deserialize)]
struct Member {
    name: String,
    source: String,
}

pub(super) fn run(command: &Command, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    match command {
        Command::Show(args) => show(&Service::open(&args.config)?, out)?,
        Command::Grant(args) => {
            let ask = json!({ "who": args.who, "role": args.role, "path": args.path });
            let done: Value = Service::open(&args.config)?.post("/api/v1/access/grants", &ask)?;
            let who = visible(&args.who);
            if done["changed"] == true {
                writeln!(out, "{who} has the role {} at {}", args.role, args.path)?;
            } else {
                writeln!(out, "{who} had that role already")?;
            }
        }
        Command::Revoke(args) => {
            let ask = json!({ "who": args.who, "role": args.role, "path": args.path });
            let done: Value =
                Service::open(&args.config)?.post("/api/v1/access/grants/revoke", &ask)?;
            if done["changed"] != true {
                anyhow::bail!(
                    "{} has no grant of {} at {}; cuebook access show lists what is granted",
                    visible(&args.who),
                    visible(&args.role),
                    visible(&args.path)
                );
            }
            writeln!(
                out,
                "{} has the role {} at {} no more",
                visible(&args.who),
                args.role,
                args.path
            )?;
        }
        Command::AddPerson(args) => {
            let ask = json!({ "name": args.name, "email": args.email, "admin": args.admin });
            let made: Value = Service::open(&args.config)?.post("/api/v1/access/people", &ask)?;
            let name = made["name"].as_str().unwrap_or(&args.name).to_owned();
            writeln!(out, "{} is known now", visible(&name))?;
            if !args.admin {
                writeln!(
                    out,
                    "give a role:   cuebook access grant {} reader",
                    visible(&name)
                )?;
            }
            writeln!(
                out,
                "make a token:  cuebook token create {}",
                visible(&name)
            )?;
        }
        Command::AddService(args) => {
            let ask = json!({ "name": args.name, "service": true });
            let made: Value = Service::open(&args.config)?.post("/api/v1/access/people", &ask)?;
            let name = made["name"].as_str().unwrap_or(&args.name).to_owned();
            writeln!(out, "{} is known now, as a service", visible(&name))?;
            writeln!(
                out,
                "give a role:   cuebook access grant {} reader",
                visible(&name)
            )?;
            writeln!(
                out,
                "make a token:  cuebook token create {} --no-expiry",
                visible(&name)
            )?;
        }
        Command::Disable(args) => {
            let path = format!("/api/v1/access/people/{}", encoded(&args.name));
            let ask = json!({ "disabled": !args.undo });
            let _: Value = Service::open(&args.config)?.post(&path, &ask)?;
            let name = visible(&args.name);
            if args.undo {
                writeln!(out, "{name} is let in again")?;
            } else {
                writeln!(
                    out,
                    "{name} is disabled: nothing lets them in, and what they had open has ended"
                )?;
            }
        }
        Command::Invite(args) => {
            let service = Service::open(&args.config)?;
            if !service.is_served() {
                anyhow::bail!(
                    "the link works while the server runs that makes it; start cuebook serve first"
                );
            }
            let path = format!("/api/v1/access/people/{}/invite", encoded(&args.name));
            let made: Value = service.post(&path, &json!({}))?;
            let url = made["url"].as_str().unwrap_or_default();
            writeln!(
                out,
                "{url}\n\nGive it to {}: it is used once, within three days, and while the server runs.",
                visible(&args.name)
            )?;
        }
        Command::Groups(args) => groups(args, out)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A name as a part of an address.
fn encoded(name: &str) -> String {
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
    utf8_percent_encode(name, NON_ALPHANUMERIC).to_string()
}

fn show(service: &Service, out: &mut impl Write) -> anyhow::Result<()> {
    let People { people } = service.all("/api/v1/access/people", &[], "people")?;
    let Grants { grants } = service.all("/api/v1/access/grants", &[], "grants")?;
    let mut given: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for grant in &grants {
        let text = format!("{} at {}", grant.role, grant.path);
        given.entry(&grant.who).or_default().push(text);
    }
    for person in &people {
        write!(out, "{}  {}", visible(&person.name), person.kind)?;
        if let Some(email) = &person.email {
            write!(out, " <{}>", visible(email))?;
        }
        if person.disabled {
            write!(out, "  DISABLED")?;
        }
        if !person.groups.is_empty() {
            write!(out, "  in {}", visible(&person.groups.join(", ")))?;
        }
        writeln!(out)?;
        for text in given.remove(&*person.name).unwrap_or_default() {
            writeln!(out, "    {}", visible(&text))?;
        }
    }
    for (who, texts) in given {
        writeln!(out, "{}", visible(who))?;
        for text in texts {
            writeln!(out, "    {}", visible(&text))?;
        }
    }
    if people.is_empty() {
        writeln!(
            out,
            "nobody is known yet; make the first admin: cuebook access add-person NAME --admin"
        )?;
    }
    Ok(())
}

fn groups(args: &GroupsArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let service = Service::open(&args.config)?;
    if let Some(group) = &args.group
        && !(args.add.is_empty() && args.remove.is_empty())
    {
        let ask = json!({ "group": group, "add": args.add, "remove": args.remove });
        let _: Value = service.post("/api/v1/access/groups", &ask)?;
    }
    let Groups { groups } = service.all("/api/v1/access/groups", &[], "groups")?;
    let mut shown = false;
    for group in &groups {
        if args.group.as_ref().is_some_and(|only| *only != group.name) {
            continue;
        }
        shown = true;
        let members: Vec<String> = group
            .members
            .iter()
            .map(|member| match &*member.source {
                "here" => visible(&member.name).into_owned(),
                _ => format!("{} (by the provider)", visible(&member.name)),
            })
            .collect();
        writeln!(out, "{}: {}", visible(&group.name), members.join(", "))?;
    }
    if !shown {
        writeln!(
            out,
            "nobody is in a group; cuebook access groups GROUP --add NAME"
        )?;
    }
    Ok(())
}
