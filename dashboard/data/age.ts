// Formats how long ago something was.

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
] as const

export function formatAge(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  for (const [unit, size] of UNITS) if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`
  return `${seconds} s`
}
