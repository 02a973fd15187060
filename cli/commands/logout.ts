// box logout: revokes the key of this machine, ends the session and removes the profile.
import type { Command } from 'commander'
import {
  createJsonOption,
  createQuietOption,
  type JsonOption,
  type QuietOption,
} from '../arguments/options.ts'
import type { RunLocalAction } from '../connection/session.ts'

export function addLogoutCommand(program: Command, runLocalAction: RunLocalAction): void {
  program
    .command('logout')
    .summary('sign out of a coordinator, and remove the profile')
    .description(
      'Revokes the API key that `box login` has created for this machine, ends the session, and removes the profile. Also ' +
        'removes the profile when the coordinator does not respond, and prints a warning. An API key that was stored with ' +
        '`box login --with-key` stays valid.',
    )
    .argument('[profile]', 'the profile (default: the profile in use)')
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box logout
  box logout boxwood.example.com

Exit codes: 1 when the profile was removed, but the key or the session could not be ended.`,
    )
    .action((name: string | undefined, options: JsonOption & QuietOption) =>
      runLocalAction(async (signal) => {
        const { logout } = await import('../login/logout.ts')
        return logout(name, options, signal)
      }),
    )
}
