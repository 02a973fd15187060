// Says that a variable, which everything on a box can read, would be safer as a secret.
import { KNOWN_SECRETS } from '../../shared/known-secrets.ts'
import { printStderr } from '../output/print.ts'

/** Names that the box command does not know, but that tokens for HTTPS services have. */
const TOKEN_NAME = /_(API_KEY|ACCESS_TOKEN|AUTH_TOKEN|TOKEN)$/

/**
 * Prints at most one line.
 * @param names the variables that were set
 * @param formatCommands returns the commands that make the variable a secret
 */
export function suggestSecret(names: readonly string[], formatCommands: (name: string) => string): void {
  const name =
    names.find((candidate) => Object.hasOwn(KNOWN_SECRETS, candidate)) ??
    names.find((candidate) => TOKEN_NAME.test(candidate))
  if (name !== undefined)
    printStderr(`Everything on a box can read ${name}. ${formatCommands(name)} keep its value off the box.`)
}
