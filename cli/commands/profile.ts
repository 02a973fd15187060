// box profile: shows and changes the name and the email address of the user.
import type { Command } from 'commander'
import { createJsonOption, createQuietOption } from '../arguments/options.ts'
import type { RunAction } from '../connection/session.ts'
import type { ProfileOptions } from '../login/profile.ts'

export function addProfileCommand(program: Command, runAction: RunAction): void {
  program
    .command('profile')
    .summary('show or change your name and email address')
    .description(
      'Shows your name, email address and role. Needs a sign-in with `box login`. With --name or --email, changes them: a code ' +
        'is sent to the new address, and box asks for it. Owners change their own address; that of a member is changed by ' +
        'an invitation. `box use` selects one of several sign-ins.',
    )
    .option('--name <name>', 'your new name')
    .option('--email <address>', 'your new email address, with which you sign in on other machines')
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box profile
  box profile --email olga@example.com`,
    )
    .action((options: ProfileOptions) =>
      runAction(async (session) => {
        const { changeProfile, showProfile } = await import('../login/profile.ts')
        const isChange = options.name !== undefined || options.email !== undefined
        return isChange ? changeProfile(session, options) : showProfile(session, options)
      }),
    )
}
