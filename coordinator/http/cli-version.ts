// Rejects requests of CLI versions that are too old (spec §9).
import { ApiError } from '../../shared/errors.ts'

export const MINIMUM_CLI_VERSION = '1.0.0'

/** Returns [major, minor, patch], without any -prerelease or +build suffix; null for anything else. */
function parse(version: string): [number, number, number] | null {
  const match = /^v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})(?:[-+].{0,64})?$/.exec(version)
  return match === null ? null : [Number(match[1]), Number(match[2]), Number(match[3])]
}

function isBelow(version: string, minimum: string): boolean {
  const [actual, required] = [parse(version), parse(minimum)]
  if (actual === null || required === null) return true
  for (const [index, number] of actual.entries()) {
    const minimumNumber = required[index] ?? 0
    if (number !== minimumNumber) return number < minimumNumber
  }
  return false
}

/** Throws cli_update_required with `minVersion`. A version that cannot be parsed counts as too old. */
export function assertCliVersion(header: string | string[] | undefined): void {
  if (header === undefined) return
  if (!isBelow(String(header), MINIMUM_CLI_VERSION)) return
  throw new ApiError(
    'cli_update_required',
    `This version of the box command is too old for the coordinator. Update it to ${MINIMUM_CLI_VERSION} or newer.`,
    { fields: { minVersion: MINIMUM_CLI_VERSION } },
  )
}
