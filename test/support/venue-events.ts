import type { VenueObserver } from '../../src/venues/observer.ts';

/** What a listener of the venues gets. */
export type EventOf<K extends keyof VenueObserver> = Parameters<NonNullable<VenueObserver[K]>>[0];
