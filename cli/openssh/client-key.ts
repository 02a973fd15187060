// The key with which OpenSSH authenticates to boxes, in the user's configuration directory.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { CliError, EXIT } from '../output/exit-codes.ts'

/** The path of the private key. */
export const getClientKeyPath = (): string =>
  join(process.env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'boxwood', 'ssh', 'id_ed25519')

/** @throws CliError when ssh-keygen fails */
export function createClientKeyUnlessExists(path: string): void {
  if (existsSync(path)) return
  mkdirSync(join(path, '..'), { recursive: true, mode: 0o700 })
  try {
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'boxwood', '-f', path], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  } catch (error) {
    // Another process has created the key.
    if (existsSync(path)) return
    const hint = 'Install the OpenSSH client (Debian, Ubuntu: apt-get install openssh-client).'
    throw new CliError(EXIT.failed, `Cannot create an SSH key with ssh-keygen. ${hint}`, { cause: error })
  }
}

/** @throws CliError when the key does not exist */
export function readPublicKey(path: string): string {
  try {
    return readFileSync(`${path}.pub`, 'utf8').trim()
  } catch (error) {
    throw new CliError(EXIT.failed, `Cannot read ${path}.pub. Create it with \`box ssh-config\`.`, {
      cause: error,
    })
  }
}
