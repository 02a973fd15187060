// Where the value of a secret is used in a request.
import { SECRET_LOCATIONS, type SecretLocation } from '../../shared/secret-locations.ts'
import type { SecretRow } from '../db/schema.ts'

/** Each once, in a fixed order. */
export const normalizeLocations = (locations: readonly SecretLocation[]): SecretLocation[] =>
  SECRET_LOCATIONS.filter((location) => locations.includes(location))

/** Does not validate: the coordinator wrote the JSON from validated values. */
export const parseLocations = ({ locations }: Pick<SecretRow, 'locations'>): SecretLocation[] =>
  JSON.parse(locations) as SecretLocation[]
