import { VenueError } from '../errors.ts';
import type { BatchRequest } from './http.ts';
import type { Asked, MemberBatches } from './member-batches.ts';

/** A refused batch route is tried again after this time. */
const REFUSED_FOR_MS = 3_600_000;
/** Members that are asked one by one to find out whether a route refuses batches or these members. */
const SAMPLE = 8;

interface Routes<A> {
  /** The route for many members, with its largest batch. */
  many: { batches: MemberBatches; size: number; get(members: readonly string[], batch: BatchRequest): Promise<A> };
  /** The route for one member; undefined where the venue has nothing for it. */
  one: { batches: MemberBatches; atOnce: number; get(member: string, batch: BatchRequest): Promise<A | undefined> };
}

interface Refusal {
  /** Whether the venue has no route for many members, or not for this client. */
  isCertain(error: VenueError): boolean;
  /** Whether the venue may have refused the form of the batch, or one member of it. */
  isPossible(error: VenueError): boolean;
}

/** Asks for members. Answers that say that the venue has nothing are undefined. Throws VenueError. */
type AskRoutes = <A>(members: readonly string[], routes: Routes<A>) => Promise<Asked<A | undefined>>;

/** A batch route with a replacement, one request per member. It remembers for an hour that the venue refuses the batch route. */
export function createBatchRoute({ isCertain, isPossible }: Refusal): AskRoutes {
  let refusedUntilMs = Number.NEGATIVE_INFINITY;

  async function isRefused<A>(members: readonly string[], { many, one }: Routes<A>): Promise<boolean> {
    for (const member of members.slice(0, SAMPLE)) {
      const answer = await one.get(member, { isPart: true }).catch(unlessOther);
      if (answer === undefined) continue;
      return many.get([member], { isPart: true }).then(
        () => false,
        (error: unknown) => error instanceof VenueError && (isCertain(error) || isPossible(error)),
      );
    }
    return false;
  }

  return async (members, routes) => {
    const { many, one } = routes;
    const askEach = () =>
      one.batches.ask(members, ([member = ''], batch) => one.get(member, batch), { size: 1, atOnce: one.atOnce });
    if (performance.now() < refusedUntilMs) return askEach();
    try {
      return await many.batches.ask(members, many.get, { size: many.size, isOfRoute: isCertain });
    } catch (error) {
      if (!(error instanceof VenueError)) throw error;
      if (!isCertain(error) && !(isPossible(error) && (await isRefused(members, routes)))) throw error;
      refusedUntilMs = performance.now() + REFUSED_FOR_MS;
      return askEach();
    }
  };
}

function unlessOther(error: unknown): undefined {
  if (!(error instanceof VenueError)) throw error;
  return undefined;
}
