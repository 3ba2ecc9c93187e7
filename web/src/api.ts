// The one way to the JSON API: same origin, with the header that a form of another site cannot send, problem details read.

import { text } from "./text";

/** A refusal of the API: RFC 9457 problem details. */
export interface Problem {
  status: number;
  title: string;
  detail: string;
  [more: string]: unknown;
}

export class ApiError extends Error {
  constructor(readonly problem: Problem, readonly retryAfter: number | null) {
    super(problem.detail || problem.title);
  }
}

export interface Ask {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Sent as JSON; makes the method POST unless it says otherwise. */
  body?: unknown;
  /** More headers, e.g. If-Match. */
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Sent also when the page is left at once. */
  keepalive?: boolean;
}

export interface Answer<T> {
  value: T;
  etag: string | null;
}

/** Asks the API. Rejects with an ApiError where it says no, or where the server cannot be reached (status 0). */
export async function ask<T>(path: string, { method, body, headers = {}, signal, keepalive }: Ask = {}): Promise<Answer<T>> {
  const init: RequestInit = {
    method: method ?? (body === undefined ? "GET" : "POST"),
    credentials: "same-origin",
    headers: { Accept: "application/json", "X-Cuebook": "1", ...headers },
  };
  if (signal) init.signal = signal;
  if (keepalive) init.keepalive = true;
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { ...(init.headers as Record<string, string>), "Content-Type": "application/json" };
  }
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError({ status: 0, title: text("failed"), detail: text("offline") }, null);
  }
  const content = await response.text();
  if (!response.ok) {
    const seconds = Number(response.headers.get("Retry-After"));
    const problem = problemOf(response, content);
    // said before it is looked at in which language
    if (problem.detail.includes("made too many requests")) problem.detail = text("too_many", { n: seconds });
    throw new ApiError(problem, seconds > 0 ? seconds : null);
  }
  const value = (content === "" ? null : JSON.parse(content)) as T;
  return { value, etag: response.headers.get("ETag") };
}

/** The same, where the ETag does not matter. */
export async function api<T>(path: string, options: Ask = {}): Promise<T> {
  return (await ask<T>(path, options)).value;
}

function problemOf(response: Response, content: string): Problem {
  try {
    const value = JSON.parse(content) as Partial<Problem> & { error?: string };
    const detail = value.detail ?? value.error;
    if (typeof detail === "string") {
      return { ...value, status: response.status, title: value.title ?? response.statusText, detail };
    }
  } catch {
    // not JSON: a proxy's page, most likely
  }
  return { status: response.status, title: response.statusText, detail: `${text("failed")} (${response.status})` };
}
