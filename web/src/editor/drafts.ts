//! Edits that are not finished: kept in this browser at once, on the server a moment later, until they are published.

import { api } from "../api";
import type { Draft } from "./page";

/** How long the server waits for more changes, in milliseconds. */
const WAIT = 1500;

/** The draft of one path. */
export class Drafts {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private sending: Promise<void> = Promise.resolve();
  private last: Draft | undefined;
  /** The draft as the server has it. */
  private kept: number | undefined;

  constructor(
    private path: string,
    private readonly onServer: boolean,
    /** Told where a draft is: in the browser, on the server too, or in neither. */
    private readonly told: (where: "browser" | "server" | "nowhere", error?: unknown) => void,
  ) {}

  private get key(): string {
    return `cuebook-draft:${this.path}`;
  }

  /** The newer of what this browser has and what the server gave. */
  newest(server: Draft | null): Draft | null {
    if (server) this.kept = server.saved_at;
    let local: Draft | null = null;
    try {
      local = JSON.parse(localStorage.getItem(this.key) ?? "null") as Draft | null;
    } catch {
      // storage is switched off, or holds what was never a draft
    }
    if (local && typeof local.text !== "string") local = null;
    if (!local) return server;
    return server && server.saved_at > local.saved_at ? server : local;
  }

  /** Keeps a text. */
  keep(base: string | null, text: string): void {
    this.last = { base, text, saved_at: Date.now() };
    let where: "browser" | "nowhere" = "browser";
    try {
      localStorage.setItem(this.key, JSON.stringify(this.last));
    } catch {
      where = "nowhere";
    }
    this.told(where);
    clearTimeout(this.timer);
    if (this.onServer) this.timer = setTimeout(() => this.send(), WAIT);
  }

  /** Sends what is kept now. */
  send(): void {
    clearTimeout(this.timer);
    const draft = this.last;
    if (!draft || !this.onServer) return;
    this.sending = this.sending.then(async () => {
      // something newer is on its way
      if (this.last !== draft) return;
      try {
        const { saved_at } = await api<{ saved_at: number }>("/editor/draft", {
          method: "PUT",
          body: { path: this.path, base: draft.base, text: draft.text },
        });
        this.kept = saved_at;
        if (this.last === draft) this.told("server");
      } catch (error) {
        if (this.last === draft) this.told("browser", error);
      }
    });
  }

  /** Forgets the draft: what it held is published, or not wanted. On the server only what was sent from here. */
  async forget(): Promise<void> {
    clearTimeout(this.timer);
    this.last = undefined;
    try {
      localStorage.removeItem(this.key);
    } catch {
      // nothing was kept either
    }
    await this.sending;
    if (!this.onServer || this.kept === undefined) return;
    const query = new URLSearchParams({ path: this.path, saved_at: String(this.kept) });
    this.kept = undefined;
    try {
      await api(`/editor/draft?${query}`, { method: "DELETE", keepalive: true });
    } catch {
      // it ends by itself, and is compared with what is published when it is next opened
    }
  }

  /** Goes on at another path. */
  async move(path: string): Promise<void> {
    const draft = this.last;
    await this.forget();
    this.path = path;
    if (draft) this.keep(draft.base, draft.text);
  }
}
