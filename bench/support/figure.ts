/** The goal of a number: of the ratio, unless it names another number. */
export type Goal = ({ atLeast: number } | { atMost: number }) & { of?: { name: string; value: number; unit: string } };

/** A figure beside the physical limit that was measured in the same run. */
export interface Figure {
  title: string;
  /** Texts for a person: numbers with their units. */
  measured: string;
  baseline: string;
  /** The measured value relative to the baseline, in the sense of the goal. */
  ratio?: number;
  /** Absent for a figure without a goal. */
  goal?: Goal;
}

/** The figures of a bench file for the table at the end of the run, a line each. */
export type FigureLine = { figure: Figure } | { note: string };
