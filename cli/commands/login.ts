// box login: signs in to a coordinator, and stores the credentials in a profile.
import { type Command, Option } from 'commander'
import { createJsonOption, createQuietOption } from '../arguments/options.ts'
import type { RunLocalAction } from '../connection/session.ts'

type Options = { email?: string; withKey?: boolean; json?: boolean; quiet?: boolean }

export function addLoginCommand(program: Command, runLocalAction: RunLocalAction): void {
  program
    .command('login')
    .summary('sign in to a coordinator')
    .description(
      'Signs in to a coordinator with a code that is sent by email, and stores the session and an API key for this machine in ' +
        'a profile, which box uses from then on. Without a URL, signs in to the coordinator that box uses; on the machine of ' +
        'the coordinator, signs in the owner without a code.',
    )
    .argument('[url]', 'the coordinator, such as https://boxwood.example.com')
    .option('--email <address>', 'the email address of the user (default: asks for it)')
    .addOption(
      new Option('--with-key', 'read an API key from stdin, and check and store it').conflicts('email'),
    )
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box login
  box login https://boxwood.example.com
  box login https://boxwood.example.com --email ada@example.com --profile work
  box login --with-key https://boxwood.example.com <key.txt

The profile has the name of the host, or that of --profile. box use lists the profiles, box logout removes one. With an API
key, commands that need a sign-in, such as box keys, do not work.`,
    )
    .action((url: string | undefined, options: Options) =>
      runLocalAction(async (signal) => {
        const { login } = await import('../login/login.ts')
        await login(url, options, signal)
        return undefined
      }),
    )
}
