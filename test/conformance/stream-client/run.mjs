import { LAST_CHECKED_AT, planOf, textOf, timeOf } from './plan.mjs';

/** The heartbeats of a connection that does not fall silent allow any pause of a busy machine. */
const CALM_SECONDS = 60;
const SILENT_SECONDS = 0.05;

/**
 * One client on the script of one seed: decides what each connection sends, and judges the log of the client.
 *
 * A log has a line per item: `trade 17 0.5`, `complete 17 <checked_at>` of a heartbeat, `gap`, `stale`, `lagged`, `snapshot`,
 * `silent <reason> <complete until>` and `error <code>`.
 */
export class Run {
  #plan;
  #next = 0;
  #place = 0;
  #epoch = 1;
  #messages = 0;
  #cursor;
  #seq = 0;
  #checkedAt = 'never';
  #isReported = false;
  #hasMessage = false;
  /** Messages of the present connection of the script that the client has, to be repeated. */
  #delivered = [];
  expected = [];
  problems = [];
  sent = [];

  constructor(seed) {
    this.#plan = planOf(seed);
    this.#seq = (this.#plan.ledger[0]?.seq ?? 1) - 1;
  }

  get query() {
    return this.#plan.query;
  }

  /** The next connection. A handshake has no place yet. */
  peek() {
    return this.#plan.connections[this.#next] ?? { fault: 'unauthorized', isBeyond: true };
  }

  /**
   * The script of the next connection: what is sent, as steps, and how it ends. `cursor` is the place that the client asks for.
   * @returns {{ connection: import('./plan.mjs').Connection, steps: { text: string, cursor: string, type: string, isValid?: boolean }[] }}
   */
  connect(cursor, { isPlaceKnown = true } = {}) {
    const connection = this.peek();
    if (connection.isBeyond) this.problems.push('the client connected again after its last connection');
    this.#next += 1;
    this.#hasMessage = false;
    if (isPlaceKnown && cursor !== this.#cursor)
      this.problems.push(`connection ${this.#next} continued at ${cursor}, not ${this.#cursor}`);
    const steps = ['refuse', 'reset', 'unauthorized'].includes(connection.fault) ? [] : [...this.#stepsOf(connection)];
    return { connection, steps };
  }

  /** The client has this step, because it was sent whole. */
  delivered(step) {
    this.sent.push(step.text);
    if (step.isValid === false) return;
    this.#hasMessage = true;
    this.#isReported = false;
    if (step.isRepeated) return;
    this.expected.push(step.line);
    this.#cursor = step.cursor;
    if (step.checkedAt) this.#checkedAt = step.checkedAt;
    if (step.isChange) this.#delivered.push(step);
  }

  /** The connection has ended. */
  ended({ fault }) {
    if (fault === 'done') return;
    if (fault === 'unauthorized') {
      this.expected.push('error unauthorized');
      return;
    }
    const isClean = fault === 'end' || fault === 'lagged';
    if ((isClean && this.#hasMessage) || this.#isReported) return;
    this.#isReported = true;
    this.expected.push(`silent ${fault === 'silence' ? 'no_heartbeat' : 'connection_lost'} ${this.#checkedAt}`);
  }

  /** The differences between the log of the client, the script and the ledger. */
  judge(log) {
    const problems = [...this.problems];
    for (let i = 0; i < Math.max(log.length, this.expected.length); i += 1) {
      if (log[i] === this.expected[i]) continue;
      problems.push(
        `line ${i}: got ${log[i]}, expected ${this.expected[i]}`,
        `log: ${log.join(' | ')}`,
        `expected: ${this.expected.join(' | ')}`,
      );
      break;
    }
    const isWhole = log.some((line) => line.startsWith('complete') && line.endsWith(LAST_CHECKED_AT));
    if (isWhole === log.includes('error unauthorized')) problems.push('the log has no end');
    if (isWhole) problems.push(...this.#lostOrRepeated(log));
    return problems;
  }

  *#stepsOf(connection) {
    if (connection.loss) yield* this.#lose(connection);
    yield this.#heartbeat(CALM_SECONDS);
    for (const step of this.#delivered.slice(-connection.repeated || this.#delivered.length))
      yield { ...step, isRepeated: true };
    const count = connection.fault === 'done' ? Number.POSITIVE_INFINITY : connection.count;
    for (let sent = 0; sent < count; sent += 1) {
      if (sent === connection.heartbeatAfter) yield this.#heartbeat(CALM_SECONDS);
      const change = this.#nextVisible();
      if (!change) break;
      yield this.#change(change);
    }
    if (connection.stale)
      yield this.#about(
        'stale',
        { reason: connection.stale, checked_at: timeOf(this.#messages) },
        `stale ${connection.stale}`,
      );
    yield* this.#lastSteps(connection);
  }

  *#lastSteps({ fault, share }) {
    if (fault === 'done') yield this.#heartbeat(CALM_SECONDS, LAST_CHECKED_AT);
    if (fault === 'silence') yield this.#heartbeat(SILENT_SECONDS);
    if (fault === 'lagged')
      yield this.#about('lagged', { reason: 'slow_reader', cursor: this.#cursorAt(this.#seq) }, `lagged ${this.#seq}`);
    // The number of the change that follows: a client that notes the cursor of such a message loses the change.
    const cursor = this.#cursorAt(this.#seq + 5);
    if (fault === 'invalid')
      yield { text: `{"type":"price","seq":${this.#seq + 5},"data":{`, cursor, type: 'price', isValid: false };
    // The client gets a part of it only.
    if (fault === 'cut' && share > 0) yield { text: 'x'.repeat(100), cursor, type: 'trade', isValid: false, share };
  }

  /** Changes that the service does not send any more. */
  *#lose({ loss, lost }) {
    const from = this.#seq + 1;
    for (let i = 0; i < lost; i += 1) {
      const change = this.#nextVisible();
      if (!change) break;
      change.isLost = true;
      this.#seq = change.seq;
    }
    if (loss === 'epoch') this.#beginEpoch();
    const line = `gap ${this.#seq} ${loss} ${from}-${this.#seq}`;
    yield this.#about('gap', { reason: loss, from, to: this.#seq }, line);
    if (this.query.snapshot) {
      const data = { market_id: 'm1', as_of: 1767323045, outcomes: [{ outcome_id: 'm1-yes', price: 0.5 }] };
      yield this.#step({ type: 'snapshot', market_id: 'm1', data }, `snapshot ${this.#seq}`);
    }
  }

  /** The numbers begin anew, below those of the earlier epoch. */
  #beginEpoch() {
    this.#epoch += 1;
    this.#seq = 3;
    this.#delivered = [];
    for (const [i, change] of this.#plan.ledger.slice(this.#place).entries()) {
      change.seq = this.#seq + 1 + i;
      change.epoch = this.#epoch;
    }
  }

  #nextVisible() {
    const { ledger } = this.#plan;
    while (this.#place < ledger.length) {
      const change = ledger[this.#place];
      this.#place += 1;
      if (change?.isVisible) return change;
    }
    return undefined;
  }

  #change(change) {
    this.#seq = change.seq;
    return { ...this.#step({ type: change.type, ...change.message }, lineOf(change)), isChange: true };
  }

  /** States every number before the next change of the subscription, so that a client continues behind changes that it does not get. */
  #heartbeat(intervalSeconds, checkedAt = timeOf(this.#messages)) {
    const next = this.#plan.ledger.slice(this.#place).find(({ isVisible }) => isVisible);
    if (next) this.#seq = next.seq - 1;
    const data = { checked_at: checkedAt, interval_seconds: intervalSeconds, venues: [] };
    return { ...this.#about('heartbeat', data, `complete ${this.#seq} ${checkedAt}`), checkedAt };
  }

  #about(type, data, line) {
    return this.#step({ type, data }, line);
  }

  #step({ type, ...fields }, line) {
    this.#messages += 1;
    const head = { type, seq: this.#seq, at: timeOf(this.#messages), venue: 'polymarket' };
    return { text: textOf({ ...head, ...fields }), cursor: this.#cursorAt(this.#seq), type, line };
  }

  #cursorAt(seq) {
    return `c.${this.#epoch}.${seq}`;
  }

  /** Each visible change of the ledger must be in the log once, or in the range of one gap. */
  #lostOrRepeated(log) {
    const counts = new Map();
    const count = (line, change) => counts.set(line, (counts.get(line) ?? 0) + change);
    for (const line of log) if (/^(price|trade|book) |^gap \d+ (feed|backfill) /.test(line)) count(line, 1);
    for (const change of this.#plan.ledger) if (change.isVisible && !change.isLost) count(lineOf(change), -1);
    const problems = [];
    for (const [line, difference] of counts) {
      if (difference !== 0) problems.push(`${line}: ${difference > 0 ? 'repeated, or not in the ledger' : 'lost'}`);
    }
    return problems;
  }
}

/** The line of a change in the log of a client. */
function lineOf({ type, seq, message: { data } }) {
  if (type === 'price') return `price ${seq} ${data.price.exact}`;
  if (type === 'trade') return `trade ${seq} ${data.size.exact}`;
  if (type === 'gap') return `gap ${seq} ${data.reason} ${data.start}-${data.end ?? 'open'}`;
  return `${type} ${seq}`;
}
