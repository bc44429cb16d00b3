import type { HostMeasures } from '../../../../src/observe/host-measures.ts';
import type { ProcessHeartbeat } from '../../../../src/store/ops/heartbeats.ts';
import { type Html, html } from '../../kit/html.ts';
import { isOverloaded, isSilent, type OpsProblem, type ProblemFacts, percentOf } from './facts.ts';

/** More processes wait for a processor than run. */
export const HIGH_LOAD = 1.5;
/** Below, the system begins to end processes. */
export const LOW_MEMORY = 0.05;
/** Below, Postgres and the archive soon cannot write. */
export const LOW_DISK = 0.05;
export const SMALL_DISK = 0.1;

/** A machine, as its running processes measure it. */
export interface Host {
  name: string;
  processes: readonly ProcessHeartbeat[];
  /** Undefined: unknown, because its processes are of a former release or have just begun. */
  loadPerCore: number | null | undefined;
  /** The free part of the memory, 0..1: of the process with the least. */
  freeMemory: number | null | undefined;
  disks: HostMeasures['disks'];
}

export function hostsOf(processes: readonly ProcessHeartbeat[]): Host[] {
  const running = processes.filter((row) => !isSilent(row));
  return [...new Set(running.map(({ host }) => host))].map((name) => {
    const own = running.filter(({ host }) => host === name);
    const measured = own.flatMap((row) => (row.measured === null ? [] : [row.measured]));
    // The figures of one process count more than the failure of another one.
    const byKnown = measured
      .flatMap((each) => each.disks)
      .toSorted((a, b) => Number('unknown' in b) - Number('unknown' in a));
    const disks = new Map(byKnown.map((disk) => [disk.folder, disk] as const));
    return {
      name,
      processes: own,
      loadPerCore: most(measured.map((each) => each.loadPerCore)),
      freeMemory: least(
        measured.map(({ memory: { available, limit } }) => (available === null ? null : available / limit)),
      ),
      disks: [...disks.values()],
    };
  });
}

function most(values: readonly (number | null)[]): number | null | undefined {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? values[0] : Math.max(...known);
}

function least(values: readonly (number | null)[]): number | null | undefined {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? values[0] : Math.min(...known);
}

/**
 * Machines that are the cause of late work, or soon will be. A high load alone is no problem while nothing is late; late processes are, and
 * so is a disk that is nearly full.
 */
export function hostProblems({ processes }: ProblemFacts, isWorkLate: boolean): OpsProblem[] {
  return hostsOf(processes).flatMap((host): OpsProblem[] => {
    const { name, loadPerCore, freeMemory } = host;
    const common = { since: null, link: '/ops#machines', area: 'host', host: name } as const;
    const found: OpsProblem[] = [];
    const isLoaded = (loadPerCore ?? 0) > HIGH_LOAD;
    const isFull = freeMemory !== null && freeMemory !== undefined && freeMemory < LOW_MEMORY;
    const late = overloadOf(host);
    if (late !== undefined || (isWorkLate && (isLoaded || isFull))) {
      const isOne = late?.isOne && !isLoaded && !isFull;
      found.push({
        ...common,
        sentence: html`${late?.text ?? html`The machine <code>${name}</code> has too little ${isLoaded ? 'processor time' : 'memory'}.`} ${stateOf(host)}`,
        affects: isOne ? 'The work of this process comes late.' : 'Everything on this machine comes late.',
        action: isOne
          ? 'Start another process of this kind, so that they share the work.'
          : isFull
            ? 'End other programs of the machine, or give it or the container more memory.'
            : 'Give the machine more processors, or run some of its processes elsewhere.',
        isCause: true,
      });
    }
    for (const disk of host.disks) {
      if ('unknown' in disk) continue;
      const { folder, total, available } = disk;
      const free = total === 0 ? 0 : available / total;
      if (free >= SMALL_DISK) continue;
      const isLow = free < LOW_DISK;
      found.push({
        ...common,
        sentence: html`The disk of the ${folder === 'data' ? 'data folder' : 'archive'} of <code>${name}</code> has ${percentOf(free)} free: ${bytesText(available)} of ${bytesText(total)}.`,
        affects:
          folder === 'data'
            ? 'When it is full, Postgres stops writing, and so does everything.'
            : 'When it is full, no day is archived.',
        action: 'Free space, or make the disk larger.',
        // A full disk of the archive stops the archive alone.
        ...(isLow && folder === 'data' && { isCause: true }),
        ...(!isLow && { tone: 'warn' }),
      });
    }
    return found;
  });
}

/** One late process may have too much work. Several on one machine show that the machine has too little. */
function overloadOf({ name, processes }: Host): { text: Html; isOne: boolean } | undefined {
  const rows = processes.filter(isOverloaded).toSorted((a, b) => (b.lateShare ?? 0) - (a.lateShare ?? 0));
  const [first] = rows;
  if (first === undefined) return undefined;
  const named = rows.map(({ process, lateShare }) => `${process} ${percentOf(lateShare)}`).join(', ');
  const text =
    rows.length > 1
      ? html`The machine <code>${name}</code> is overloaded. Its processes ran late in these parts of the last 10 s: ${named}.`
      : html`The ${first.process} is overloaded: process ${first.pid} on <code>${name}</code> ran late in ${percentOf(first.lateShare)} of the last 10 s.`;
  return { text, isOne: rows.length === 1 };
}

/** Load, event loop, memory and disk in one sentence. */
function stateOf({ loadPerCore, freeMemory, disks, processes }: Host): Html {
  if (loadPerCore === undefined) {
    return html`Load, memory and disk are unknown: its processes are of a former release, or have just begun.`;
  }
  const delays = processes.flatMap(({ measured }) => (measured === null ? [] : [measured.loopDelayMs]));
  const parts = [
    loadPerCore === null ? 'load unknown on this system' : `load ${loadPerCore.toFixed(1)} per core`,
    `event loops late by up to ${Math.max(...delays).toLocaleString('en-US')} ms`,
    freeMemory === null || freeMemory === undefined ? 'memory unknown' : `${percentOf(freeMemory)} of the memory free`,
    ...disks.map((disk) =>
      'unknown' in disk
        ? `${disk.folder} disk unknown (${disk.unknown})`
        : `${percentOf(disk.total === 0 ? 0 : disk.available / disk.total)} of the ${disk.folder} disk free`,
    ),
    ...(disks.length === 0 ? ['disk not on this machine'] : []),
  ];
  return html`Now: ${parts.join(', ')}.`;
}

export function bytesText(bytes: number): string {
  const gigabytes = bytes / 1_000_000_000;
  return `${gigabytes.toLocaleString('en-US', { maximumFractionDigits: gigabytes < 10 ? 1 : 0 })} GB`;
}
