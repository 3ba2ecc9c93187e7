//! Edits that are not finished: kept in this browser at once, on the server a moment later, until they are published.

import { api } from "../api";
import type { Draft } from "./page";

/** How long the server waits for more changes, in milliseconds. */
const WAIT = 1500;

/** A draft as this browser keeps it. */
interface Local extends Draft {
  /** `saved_at` of the draft that the server had when this one was made; null where it had none. */
  on?: number | null;
  /** Whether the server's was this very text. */
  sent?: boolean;
}

/** What is kept at a path: the draft to go on with, and others of which nobody can say that they are older. */
export interface Found {
  draft: Draft | null;
  others: Draft[];
}

/** The draft of one path. */
export class Drafts {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private sending: Promise<void> = Promise.resolve();
  private last: Local | undefined;
  /** The draft as the server has it. */
  private kept: number | undefined;
  /** Whether an earlier page of this browser may have sent its draft after this page was made. */
  private onItsWay = false;
  private noticed = false;

  constructor(
    private path: string,
    private readonly onServer: boolean,
    /** Told where a draft is: in the browser, on the server too, or in neither. */
    private readonly told: (where: "browser" | "server" | "nowhere", error?: unknown) => void,
    /** Told once that the same file is written in another tab or browser as well: the last to write is what is kept. */
    private readonly elsewhere: () => void = () => {},
  ) {}

  private get key(): string {
    return `cuebook-draft:${this.path}`;
  }

  /** Where drafts are that were not chosen, until they are given up. */
  private get asideKey(): string {
    return `cuebook-drafts-aside:${this.path}`;
  }

  /**
   * What this browser has and what the server gave, without what holds just the published text. This browser's is the newer
   * one exactly where it was made on the server's, whatever their clocks say; else both are there to choose from.
   */
  find(server: Draft | null, published: string): Found {
    this.kept = server?.saved_at;
    const local = read(this.key, isDraft);
    this.onItsWay = local !== undefined && !local.sent;
    const newer = local !== undefined && server !== null && local.on === server.saved_at;
    // a text that the server once had has been replaced there by somebody who goes on
    const drafts = newer ? [local] : local?.sent ? [server, local] : [local, server];
    const all = [...drafts, ...(read(this.asideKey, isDrafts) ?? [])].filter((draft) => draft != null);
    const [draft = null, ...others] = unlike(published, all);
    // it is no longer aside
    if (draft && !drafts.includes(draft)) this.store({ ...draft, on: this.kept ?? null });
    this.aside(others);
    if (!draft && all.length > 0) void this.forget();
    return { draft, others };
  }

  /** Takes notice of what another tab of this browser has stored. */
  stored(key: string | null, value: string | null): void {
    if (key === this.key && value !== null && read(this.key, isDraft)?.text !== this.last?.text) this.notice();
  }

  private notice(): void {
    if (!this.noticed) this.elsewhere();
    this.noticed = true;
  }

  /** Keeps those that were not chosen. */
  aside(others: Draft[]): void {
    try {
      if (others.length === 0) localStorage.removeItem(this.asideKey);
      else localStorage.setItem(this.asideKey, JSON.stringify(others));
    } catch {
      // they are still in the page
    }
  }

  /** Keeps a text. */
  keep(base: string | null, text: string): void {
    this.last = { base, text, saved_at: Date.now(), on: this.kept ?? null };
    this.told(this.store(this.last) ? "browser" : "nowhere");
    clearTimeout(this.timer);
    if (this.onServer) this.timer = setTimeout(() => this.send(), WAIT);
  }

  private store(draft: Local): boolean {
    try {
      localStorage.setItem(this.key, JSON.stringify(draft));
      return true;
    } catch {
      return false;
    }
  }

  /** The server has a draft: what was typed meanwhile was made on it too. */
  private settled(path: string, draft: Local): void {
    if (!this.last || path !== this.path) return;
    this.last.on = this.kept ?? null;
    this.last.sent = this.last === draft;
    // another tab may have kept its own text since
    if (read(this.key, isDraft)?.text === this.last.text) this.store(this.last);
  }

  /** Sends what is kept now. */
  send(): void {
    clearTimeout(this.timer);
    const draft = this.last;
    if (!draft || !this.onServer) return;
    this.sending = this.sending.then(async () => {
      // something newer is on its way
      if (this.last !== draft) return;
      const { path } = this;
      try {
        const { saved_at, elsewhere } = await api<{ saved_at: number; elsewhere?: boolean }>("/editor/draft", {
          method: "PUT",
          // by what an earlier page of this browser may have sent nothing is known
          body: { path, base: draft.base, text: draft.text, ...(this.onItsWay ? {} : { on: this.kept ?? 0 }) },
        });
        if (elsewhere) this.notice();
        this.kept = saved_at;
        this.onItsWay = false;
        this.settled(path, draft);
        if (this.last === draft) this.told("server");
      } catch (error) {
        if (this.last === draft) this.told("browser", error);
      }
    });
  }

  /** Forgets the draft: what it held is published, or not wanted. On the server only what was sent from here. */
  async forget(): Promise<void> {
    clearTimeout(this.timer);
    const { path } = this;
    this.last = undefined;
    try {
      localStorage.removeItem(this.key);
    } catch {
      // nothing was kept either
    }
    await this.sending;
    if (!this.onServer || (this.kept === undefined && !this.onItsWay)) return;
    const query = new URLSearchParams({ path });
    // what an earlier page has sent last is known by no time
    if (!this.onItsWay) query.set("saved_at", String(this.kept));
    this.kept = undefined;
    this.onItsWay = false;
    try {
      await api(`/editor/draft?${query}`, { method: "DELETE", keepalive: true });
    } catch {
      // it ends by itself, and is compared with what is published when it is next opened
    }
  }

  /** Goes on at another path, at once; settles when the old one is forgotten. */
  move(path: string): Promise<void> {
    const draft = this.last;
    const aside = read(this.asideKey, isDrafts) ?? [];
    const gone = this.forget();
    this.aside([]);
    this.path = path;
    this.aside(unlike(undefined, [...aside, ...(read(this.asideKey, isDrafts) ?? [])]));
    // nothing of the server is known there
    if (draft) this.keep(draft.base, draft.text);
    return gone;
  }
}

function isDraft(value: unknown): value is Local {
  return typeof (value as Local | null)?.text === "string";
}

function isDrafts(value: unknown): value is Draft[] {
  return Array.isArray(value) && value.every(isDraft);
}

/** What this browser keeps under a key; none where it is not what it should be. */
function read<T>(key: string, is: (value: unknown) => value is T): T | undefined {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(key) ?? "null");
    return is(value) ? value : undefined;
  } catch {
    // storage is switched off, or holds what was never a draft
    return undefined;
  }
}

/** Those drafts that hold another text than one, each text once. */
function unlike(one: string | undefined, drafts: Draft[]): Draft[] {
  const out: Draft[] = [];
  for (const draft of drafts) {
    if (draft.text !== one && out.every(({ text }) => text !== draft.text)) out.push(draft);
  }
  return out;
}
