// Where the value of a secret is used in a request.
import type { Secret } from '../../shared/api/secrets.ts'
import { SECRET_LOCATIONS, type SecretLocation } from '../../shared/secret-locations.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'

/** @throws CliError */
export function parseLocations(text: string): SecretLocation[] {
  return text.split(',').map((word) => {
    const location = SECRET_LOCATIONS.find((candidate) => candidate === word.trim())
    if (location !== undefined) return location
    throw new CliError(
      EXIT.usage,
      `--in must be one or more of ${SECRET_LOCATIONS.join(',')}, separated by commas, and not '${sanitize(word)}'.`,
    )
  })
}

export const formatLocations = (locations: Secret['in']): string => locations.join(', ')
