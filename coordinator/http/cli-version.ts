// The box command names its version; one that is too old is told to update (spec §9).
import { ApiError } from '../../shared/errors.ts'

export const MINIMUM_CLI_VERSION = '0.1.0'

/** major.minor.patch as numbers; null for anything else. What follows a - or + does not count. */
function parse(version: string): [number, number, number] | null {
  const match = /^v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})(?:[-+].{0,64})?$/.exec(version)
  return match === null ? null : [Number(match[1]), Number(match[2]), Number(match[3])]
}

function isBelow(version: string, minimum: string): boolean {
  const [given, least] = [parse(version), parse(minimum)]
  if (given === null || least === null) return true
  for (const [index, part] of given.entries()) {
    const other = least[index] ?? 0
    if (part !== other) return part < other
  }
  return false
}

/** Throws cli_update_required with `minVersion`. A version that cannot be read counts as too old. */
export function assertCliVersion(header: string | string[] | undefined): void {
  if (header === undefined) return
  if (!isBelow(String(header), MINIMUM_CLI_VERSION)) return
  throw new ApiError(
    'cli_update_required',
    `This version of the box command is too old for the coordinator: it needs ${MINIMUM_CLI_VERSION} or newer.`,
    { fields: { minVersion: MINIMUM_CLI_VERSION } },
  )
}
