export function licenceNotices(root: string): string;
