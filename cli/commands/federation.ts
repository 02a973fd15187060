// box federation: the public documents of the identity issuer.
import type { Command } from 'commander'
import {
  createJsonOption,
  createQuietOption,
  type JsonOption,
  type QuietOption,
} from '../arguments/options.ts'
import type { RunAction } from '../connection/session.ts'

export function addFederationCommand(program: Command, runAction: RunAction): void {
  const federation = program
    .command('federation')
    .summary('publish the documents of the identity issuer')
    .description('The identity issuer of the deployment, whose tokens boxes exchange for cloud roles.')
    .helpCommand(false)
    .addHelpText('after', '\nExample:\n  box federation publish site')
  federation
    .command('publish')
    .summary('write the documents into a directory')
    .description(
      'Writes the two public documents of the issuer, for a host that serves them in place of the coordinator: ' +
        '.well-known/openid-configuration and jwks. They have no private key. Run it again each day, because the keys change.',
    )
    .argument('<directory>', 'the directory that is served at the URL of the issuer')
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      '\nExamples:\n  box federation publish site\n  aws s3 sync site s3://my-bucket --content-type application/json',
    )
    .action((directory: string, options: JsonOption & QuietOption) =>
      runAction(async (session) => {
        const { publishDocuments } = await import('../federation/publish.ts')
        return publishDocuments(session, directory, options)
      }),
    )
}
