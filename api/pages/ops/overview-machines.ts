import type { ProcessHeartbeat } from '../../../src/store/ops/heartbeats.ts';
import { ago, badge, duration, type Html, html, longText, NONE, table } from '../kit/html.ts';
import { isOverloaded, isSilent, OPTIONAL_PROCESS, PROCESSES, percentOf } from './problems/facts.ts';
import { bytesText, HIGH_LOAD, type Host, hostsOf, LOW_DISK, LOW_MEMORY, SMALL_DISK } from './problems/host.ts';

/** The machines of the running processes, with the figures that these measure. */
export function machineTable(processes: readonly ProcessHeartbeat[]): Html {
  const unknown = badge('warn', 'unknown');
  const state = (text: string, isBad: boolean) => (isBad ? badge('bad', text) : text);
  return table<Host>({
    caption: 'Machines of the running processes',
    columns: [
      { label: 'Machine', cell: ({ name }) => longText(name) },
      { label: 'Processes', cell: ({ processes: own }) => own.map(({ process }) => process).join(', ') },
      {
        label: 'Load per core, 5 min',
        cell: ({ loadPerCore: load }) =>
          load === null || load === undefined ? unknown : state(load.toFixed(2), load > HIGH_LOAD),
      },
      {
        label: 'Memory free',
        cell: ({ freeMemory: free }) =>
          free === null || free === undefined ? unknown : state(percentOf(free), free < LOW_MEMORY),
      },
      {
        label: 'Disk free',
        cell: ({ disks, loadPerCore: load }) =>
          disks.length === 0
            ? html`${unknown} <span class="muted">${
                load === undefined
                  ? 'no process of this machine has measured it'
                  : 'no folder of Postgres or of the archive is on this machine'
              }</span>`
            : disks.map((disk) => {
                if ('unknown' in disk) {
                  return html`<div>${disk.folder} ${unknown} <span class="muted">${disk.unknown}</span></div>`;
                }
                const { folder, available, total } = disk;
                const text = `${folder} ${percentOf(available / total)}, ${bytesText(available)}`;
                return html`<div>${available < SMALL_DISK * total ? badge(available < LOW_DISK * total ? 'bad' : 'warn', text) : text}</div>`;
              }),
      },
    ],
    rows: hostsOf(processes),
    empty: 'No process sends a heartbeat.',
  });
}

interface ShownProcess {
  kind: string;
  /** Null: no process of this kind is known. */
  row: ProcessHeartbeat | null;
}

/** The processes by their heartbeats, without the ended ones that another process replaced. */
export function processTable(processes: readonly ProcessHeartbeat[], nowMs: number): Html {
  const shown = processes.filter((row) => !isSilent(row) || !row.isReplaced);
  const rows = PROCESSES.flatMap((kind): ShownProcess[] => {
    const own = shown.filter(({ process }) => process === kind);
    return own.length === 0 ? [{ kind, row: null }] : own.map((row) => ({ kind, row }));
  });
  return table<ShownProcess>({
    caption: 'Processes by their heartbeats',
    columns: [
      { label: 'Process', cell: ({ kind }) => kind },
      {
        label: 'State',
        cell: ({ kind, row }) =>
          row === null
            ? kind === OPTIONAL_PROCESS
              ? badge('idle', 'not started')
              : badge('bad', 'missing')
            : isSilent(row)
              ? badge('bad', 'no heartbeat')
              : isOverloaded(row)
                ? badge('bad', 'overloaded')
                : badge('good', 'running'),
      },
      {
        label: 'Late in 10 s',
        cell: ({ row }) => (row === null || row.lateShare === null || isSilent(row) ? NONE : percentOf(row.lateShare)),
        isNumeric: true,
      },
      {
        label: 'Event loop late by',
        cell: ({ row }) =>
          row === null || isSilent(row)
            ? NONE
            : row.measured === null
              ? badge('warn', 'unknown')
              : html`<span class="num">${row.measured.loopDelayMs.toLocaleString('en-US')} ms</span>`,
        isNumeric: true,
      },
      {
        label: 'Last heartbeat',
        cell: ({ row }) => (row === null ? NONE : row.silentMs < 1_000 ? 'now' : `${duration(row.silentMs)} ago`),
      },
      { label: 'Machine', cell: ({ row }) => longText(row?.host) },
      { label: 'Process id', cell: ({ row }) => (row === null ? NONE : String(row.pid)), isNumeric: true },
      { label: 'Version', cell: ({ row }) => row?.version ?? NONE },
      { label: 'Started', cell: ({ row }) => ago(row?.startedAt, nowMs) },
    ],
    rows,
    empty: 'No process is known.',
  });
}
