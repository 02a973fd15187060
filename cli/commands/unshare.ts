// box unshare: ends the link of a shared port.
import type { Command } from 'commander'
import { createJsonOption, createQuietOption } from '../arguments/options.ts'
import type { RunAction } from '../connection/session.ts'
import type { UnshareOptions } from '../shares/end-shares.ts'
import { parsePort } from '../shares/ports.ts'

export function addUnshareCommand(program: Command, runAction: RunAction): void {
  program
    .command('unshare')
    .summary('end the link of a shared port')
    .description(
      'Ends the link of a port. Open pages lose their connections immediately, and the address never works again.',
    )
    .argument('[share]', "the box's name or id; or a link: its address or id")
    .argument('[port]', 'the shared port. Default: the only one of the box', parsePort)
    .option('-a, --all', 'end all links of the box; without a box, all links that you see')
    .option('-y, --yes', 'do not ask for confirmation')
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box unshare fig 3000
  box unshare http://fig-3000-x7k2m9q4wz.localhost:7070/
  box unshare fig --all
  box shares -q --filter access=public | xargs -rn1 box unshare`,
    )
    .action((share: string | undefined, port: number | undefined, options: UnshareOptions) =>
      runAction(async (session) => {
        const { endShares } = await import('../shares/end-shares.ts')
        return endShares(session, share, port, options)
      }),
    )
}
