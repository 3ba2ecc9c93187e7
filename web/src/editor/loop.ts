//! One request at a time, and of those that wait only the newest: what comes back is never older than what was shown.

/** Asks again and again, a moment after each change. */
export class Loop<Question, Answer> {
  private waiting: Question | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private running: AbortController | undefined;
  private ended = false;

  constructor(
    private readonly run: (question: Question, signal: AbortSignal) => Promise<Answer>,
    /** How long to wait for more changes, in milliseconds. */
    private readonly wait: number,
    /** `newest`: nothing newer is asked for. */
    private readonly take: (answer: Answer, question: Question, newest: boolean) => void,
    private readonly fail: (error: unknown) => void,
  ) {}

  /** Asks a moment from now, or now. What waited before is forgotten. */
  ask(question: Question, now = false): void {
    this.waiting = question;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.next(), now ? 0 : this.wait);
  }

  /** Ends what is asked. */
  stop(): void {
    this.ended = true;
    clearTimeout(this.timer);
    this.running?.abort();
  }

  private async next(): Promise<void> {
    // the server makes one preview at a time for each address: the one that runs is waited for, and its answer dropped
    if (this.running || this.waiting === undefined || this.ended) return;
    const question = this.waiting;
    this.waiting = undefined;
    this.running = new AbortController();
    let again = 0;
    try {
      const answer = await this.run(question, this.running.signal);
      if (!this.ended) this.take(answer, question, this.waiting === undefined);
    } catch (error) {
      const after = error instanceof Error && "retryAfter" in error ? Number(error.retryAfter) : 0;
      if (after > 0) {
        this.waiting ??= question;
        again = Math.min(after, 30) * 1000;
      }
      if (!this.ended) this.fail(error);
    } finally {
      this.running = undefined;
    }
    if (this.waiting !== undefined) {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => void this.next(), again);
    }
  }
}
