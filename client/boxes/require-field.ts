// Checks what the client reads from a response.
import { createInvalidError } from '../http/errors.ts'

/** A field that every version of the coordinator sends: without it, the response is that of another server. @throws BoxwoodError */
export function requireField<Response extends object, Name extends keyof Response & string>(
  response: Response,
  name: Name,
): NonNullable<Response[Name]> {
  const value = Array.isArray(response) ? undefined : response[name]
  if (value === undefined || value === null) throw createInvalidError(`a response without the field ${name}`)
  return value
}
