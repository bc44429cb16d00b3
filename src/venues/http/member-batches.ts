import { boundedCache } from '../../domain/values/caches.ts';
import { isOfHost, mayBeOfMember, VenueError } from '../errors.ts';
import type { RefusedMember, VenueObserver } from '../observer.ts';
import { addPart, emptyBatch, type ParsedBatch } from '../parsed-batch.ts';
import type { Batch, RecordKind, RejectedRecord } from '../port.ts';
import { rejectRecord } from '../rejection.ts';
import type { BatchRequest, VenueHttp } from './http.ts';
import { chunks, halvesOf } from './parts.ts';

/** The reason of the rejected record that stands for a member in quarantine. */
export const MEMBER_REFUSED = 'member_refused';

/** The first wait of a member in quarantine; each further failure doubles it. */
const FIRST_RETRY_MS = 30_000;
const MAX_RETRY_MS = 3_600_000;
/** Members are forgotten when nothing has asked for them for so long after their retry time. */
const FORGET_MS = 2 * MAX_RETRY_MS;
const MAX_QUARANTINED = 10_000;
/** Members that only fail together are asked apart for this long, then together again. */
const APART_MS = 600_000;
/** So many halvings in a row whose halves both failed, without a success between them, are the fault of the host. */
const MAX_STRIKES = 3;

/** The result of asking for members; each member is in an answer, refused, or unread. */
export interface Asked<A> {
  answers: { members: readonly string[]; answer: A }[];
  /** Members that failed alone in this call: they are in quarantine now. */
  refused: RefusedMember[];
  /** Members without an answer: in quarantine since an earlier call, or not asked because the host fails. */
  unread: string[];
  /** Why the host fails, when it served others of these members before. */
  fault?: VenueError;
}

interface AskOptions {
  /** Members of one request. */
  size: number;
  /** Requests in flight at once; parts of a failed batch always follow each other. */
  atOnce?: number;
  /** Whether an error is about the route and not about a member: it is thrown at once. */
  isOfRoute?(error: VenueError): boolean;
  /** The host answered another request of the caller just now: a member that fails alone is bad without a success beside it. */
  isAnswering?: boolean;
}

export interface MemberBatches {
  /**
   * Asks for members, `size` of them a request. A batch that fails for a reason that may be one member's is halved until the bad member
   * stands alone. It then goes into quarantine, and the others get their answers.
   * @throws VenueError when no member was answered, unless the host `isAnswering`
   */
  ask<A>(
    members: readonly string[],
    request: (members: readonly string[], batch: BatchRequest) => Promise<A>,
    options: AskOptions,
  ): Promise<Asked<A>>;
}

interface Quarantined {
  failures: number;
  retryAtMs: number;
}

/** Members that are asked in a request of their own. */
interface Group {
  members: ReadonlySet<string>;
  /** Failed as a whole; else it succeeds, and fails beside others. */
  isSuspect: boolean;
  /** A suspect that failed in a call in which the host answered for others: never asked together with other suspects again. */
  isNarrowed: boolean;
  untilMs: number;
}

interface Piece {
  members: readonly string[];
  isPart: boolean;
  group?: Group;
}

interface Host extends Pick<VenueHttp, 'isFailing' | 'blame'> {
  venue: string;
  route: string;
  observer?: VenueObserver | undefined;
  /** Milliseconds that only go forward. */
  now?(): number;
}

/**
 * The batches of one route of a host, which every request that names several ids goes through.
 *
 * Everything it knows is in memory, in each process on its own: it saves requests and decides about no stored fact. A process that starts
 * finds a bad member again with some requests, and asks a healed one at once, which an operator expects of a restart. Two pollers that
 * take turns with a venue each learn it once. The rejected record that stands for the member is stored, as any other.
 */
export function createMemberBatches(host: Host): MemberBatches {
  const { now = () => performance.now() } = host;
  const quarantine = boundedCache<Quarantined>(MAX_QUARANTINED, FORGET_MS);
  let groups: Group[] = [];
  /** No member was answered in the latest call that failed: the first success ends the doubt about all groups. */
  let isDoubtful = false;

  /** The requests of a call in their order: members that never failed, then failed ones, the oldest failure first, then members on probation. */
  function plan(members: readonly string[], size: number): { pieces: Piece[]; waiting: string[] } {
    const nowMs = now();
    groups = groups.filter(({ untilMs }) => nowMs < untilMs);
    const left = new Set(members);
    const waiting: string[] = [];
    const probation: { member: string; retryAtMs: number }[] = [];
    for (const member of left) {
      const { retryAtMs } = quarantine.get(member) ?? {};
      if (retryAtMs === undefined) continue;
      left.delete(member);
      if (nowMs < retryAtMs) waiting.push(member);
      else probation.push({ member, retryAtMs });
    }
    const apart: Piece[] = [];
    for (const group of groups) {
      const found = [...left].filter((member) => group.members.has(member));
      for (const member of found) left.delete(member);
      for (const part of chunks(found, size)) apart.push({ members: part, isPart: true, group });
    }
    const pieces: Piece[] = [
      ...chunks([...left], size).map((part) => ({ members: part, isPart: false })),
      ...apart,
      ...probation.sort((a, b) => a.retryAtMs - b.retryAtMs).map(({ member }) => ({ members: [member], isPart: true })),
    ];
    return { pieces, waiting };
  }

  function remember(members: readonly string[], isSuspect: boolean, isNarrowed = false): void {
    if (members.length > 0)
      groups.push({ members: new Set(members), isSuspect, isNarrowed, untilMs: now() + APART_MS });
  }

  function forget(group: Group | undefined): void {
    if (group !== undefined) groups = groups.filter((each) => each !== group);
  }

  function confine(member: string, error: VenueError): RefusedMember {
    const failures = (quarantine.get(member)?.failures ?? 0) + 1;
    const retryAfterMs = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 20));
    quarantine.set(member, { failures, retryAtMs: now() + retryAfterMs });
    return { member, route: host.route, reason: error.message, failures, retryAfterMs };
  }

  function report(refused: readonly RefusedMember[], healed: readonly string[]): void {
    if (refused.length === 0 && healed.length === 0) return;
    const { venue, route } = host;
    quarantine.purgeStale();
    host.observer?.onMembers?.({ venue, route, refused, healed, quarantined: quarantine.size });
  }

  return {
    async ask<A>(
      members: readonly string[],
      request: (members: readonly string[], batch: BatchRequest) => Promise<A>,
      { size, atOnce = 1, isOfRoute = () => false, isAnswering = false }: AskOptions,
    ): Promise<Asked<A>> {
      const { pieces, waiting: unread } = plan(members, size);
      const answers: Asked<A>['answers'] = [];
      const alone: { member: string; error: VenueError }[] = [];
      const failures: VenueError[] = [];
      const healed: string[] = [];
      let strikes = 0;
      let stop: { error: VenueError; isThrown: boolean } | undefined;

      /** The failure of one request; undefined when it succeeded, or when the call stops. */
      async function attempt(piece: Piece): Promise<VenueError | undefined> {
        const { members: asked, isPart } = piece;
        if (stop) {
          unread.push(...asked);
          return undefined;
        }
        try {
          succeeded(piece, await request(asked, { isPart: isPart || isDoubtful }));
          return undefined;
        } catch (thrown) {
          if (!(thrown instanceof VenueError)) throw thrown;
          failures.push(thrown);
          if (answers.length === 0 && isOfRoute(thrown)) stop ??= { error: thrown, isThrown: true };
          else if (mayBeOfMember(thrown)) return thrown;
          else stop ??= { error: thrown, isThrown: false };
          unanswered(piece, thrown);
          return undefined;
        }
      }

      /** Without an answer, the call does not halve; but the next call asks for these members last, and apart. */
      function unanswered({ members: asked, isPart, group }: Piece, error: VenueError): void {
        const [member] = asked;
        const hasAnswer = answers.length > 0 || isAnswering;
        if (error.code === 'timeout' && isPart && asked.length === 1 && hasAnswer && member !== undefined) {
          alone.push({ member, error });
          return;
        }
        unread.push(...asked);
        if (isOfHost(error) || stop?.isThrown) return;
        forget(group);
        rememberHalves(asked, group);
      }

      /** The next call goes on with these halves. Without an answer in this call, the fault may be the host's. */
      function rememberHalves(asked: readonly string[], group: Group | undefined): void {
        const isNarrowed = answers.length > 0 || group?.isNarrowed === true;
        for (const half of halvesOf(asked)) remember(half, true, isNarrowed);
      }

      function succeeded({ members: asked, group }: Piece, answer: A): void {
        answers.push({ members: asked, answer });
        strikes = 0;
        if (group?.isSuspect) forget(group);
        for (const member of asked) if (quarantine.delete(member)) healed.push(member);
        if (!isDoubtful) return;
        isDoubtful = false;
        mergeSuspects();
      }

      /**
       * The host works again: the call asks for the suspects together, except the narrowed ones. Two batches with many bad members would
       * otherwise undo each other's halving in turn, without end.
       */
      function mergeSuspects(): void {
        const mayMerge = ({ isSuspect, isNarrowed }: Group) => isSuspect && !isNarrowed;
        const suspect = pieces.filter(({ group }) => group && mayMerge(group));
        groups = groups.filter((group) => !mayMerge(group));
        const merged = chunks(
          suspect.flatMap((piece) => piece.members),
          size,
        );
        const others = pieces.filter((piece) => !suspect.includes(piece));
        pieces.splice(0, pieces.length, ...merged.map((part) => ({ members: part, isPart: true })), ...others);
      }

      function strike(error: VenueError): void {
        strikes += 1;
        if (strikes >= MAX_STRIKES) stop ??= { error, isThrown: false };
      }

      /** Narrows a failed piece down to its bad members. */
      async function narrow({ members: asked, group }: Piece, error: VenueError): Promise<void> {
        forget(group);
        if (asked.length === 1) {
          for (const member of asked) alone.push({ member, error });
          return;
        }
        if (host.isFailing()) stop ??= { error, isThrown: false };
        if (stop) {
          rememberHalves(asked, group);
          unread.push(...asked);
          return;
        }
        const halves = halvesOf(asked);
        const failed: { piece: Piece; error: VenueError }[] = [];
        let answered = 0;
        for (const half of halves) {
          // The halves of a narrowed group stay narrowed, also in a call without an answer.
          const piece: Piece = { members: half, isPart: true, ...(group?.isNarrowed && { group }) };
          const before = answers.length;
          const failure = await attempt(piece);
          if (failure) failed.push({ piece, error: failure });
          answered += answers.length - before;
        }
        if (failed.length === halves.length) strike(failed[0]?.error ?? error);
        if (answered === halves.length) remember(halves[1] ?? [], false);
        for (const each of failed) await narrow(each.piece, each.error);
      }

      /** A member that fails again alone, while the host answers for others, says nothing new of the host. */
      const isExpected = ({ members: [member = ''] }: Piece) => answers.length > 0 && quarantine.has(member);

      const work = async () => {
        for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) {
          const error = await attempt(piece);
          if (error === undefined) continue;
          if (piece.members.length === 1 && !isExpected(piece)) strike(error);
          await narrow(piece, error);
        }
      };
      await Promise.all(Array.from({ length: atOnce }, work));

      const cause = stop?.error ?? failures[0];
      if (answers.length === 0 && (stop || alone.length === 0 || !isAnswering)) await host.blame(failures);
      const isProof = answers.length > 0 || (isAnswering && alone.length > 0);
      if (!isProof || stop?.isThrown) {
        for (const { member } of alone) remember([member], true);
        if (cause === undefined) return { answers, refused: [], unread };
        if (!isOfHost(cause) && !stop?.isThrown) isDoubtful = true;
        throw cause;
      }
      const refused = alone.map(({ member, error }) => confine(member, error));
      report(refused, healed);
      return { answers, refused, unread, ...(stop && { fault: stop.error }) };
    },
  };
}

/** The raw records of all answers, and the batch that they make. A member in quarantine counts as a rejected record. */
export function joinAnswers<A, R>(
  kind: RecordKind,
  { answers, refused }: Asked<A | undefined>,
  nowMs: number,
  parse: (answer: A, members: ReadonlySet<string>) => { rows: number; part: ParsedBatch<R> },
): { rows: number; batch: ParsedBatch<R> } {
  const batch = { ...emptyBatch<R>(), rejected: rejectMembers(kind, refused, nowMs) };
  let rows = refused.length;
  for (const { members, answer } of answers) {
    if (answer === undefined) continue;
    const parsed = parse(answer, new Set(members));
    rows += parsed.rows;
    addPart(batch, parsed.part);
  }
  return { rows, batch };
}

/** The rejected records that stand for members in quarantine. */
export function rejectMembers(kind: RecordKind, refused: readonly RefusedMember[], nowMs: number): RejectedRecord[] {
  return refused.map(({ member, route, reason, failures, retryAfterMs }) => {
    const retryAt = new Date(nowMs + retryAfterMs).toISOString();
    const detail = `${reason} for this id alone, ${failures} in a row on the route ${route}; asked again at ${retryAt}`;
    return rejectRecord(kind, { id: member, route, failures, retryAt }, { reason: MEMBER_REFUSED, detail }, member);
  });
}

/** The unread members of a batch, with the reason. */
export function unreadOf({
  unread,
  fault,
}: Pick<Asked<unknown>, 'unread' | 'fault'>): Pick<Batch<never>, 'unread' | 'fault'> {
  return { ...(unread.length > 0 && { unread }), ...(fault && { fault }) };
}
