export interface InspectedFile {
  file: string;
  words: number;
  found: string[];
}

export interface ProseLimits {
  limit: number;
  fileLimit: number;
  minWords: number;
}

export function inspectProse(file: string, text: string): InspectedFile;
export function rateOf(result: InspectedFile): number;
export function judgeProse(
  results: readonly InspectedFile[],
  limits: ProseLimits,
): { words: number; rate: number; ranked: InspectedFile[]; bad: InspectedFile[]; isBad: boolean };
