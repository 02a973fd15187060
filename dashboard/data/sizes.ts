// Formats numbers of bytes, and of GB, as the API reports the sizes of snapshots.

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']

/** With three digits, such as `1.25 MiB`. */
export function formatBytes(bytes: number): string {
  let value = Math.abs(bytes)
  let unit = 0
  // 1023.5 would be shown as 1024.
  while (value >= 1023.5 && unit < UNITS.length - 1) {
    value /= 1024
    unit += 1
  }
  const digits = value >= 100 || unit === 0 ? 0 : value >= 10 ? 1 : 2
  return `${bytes < 0 ? '-' : ''}${Number(value.toFixed(digits))} ${UNITS[unit]}`
}

export const formatGb = (gb: number): string => formatBytes(gb * 1e9)
