// box share: shares a port of a box by a link, for a browser.
import { type Command, Option } from 'commander'
import { createDurationParser, createJsonOption, createQuietOption } from '../arguments/options.ts'
import type { RunAction } from '../connection/session.ts'
import { parsePort } from '../shares/ports.ts'
import type { ShareOptions } from '../shares/share-port.ts'

const AUDIENCES = ['members', 'anyone', 'public'] as const

type TypedOptions = ShareOptions & { members?: boolean; anyone?: boolean; public?: boolean }

export function addShareCommand(program: Command, runAction: RunAction): void {
  program
    .command('share')
    .summary('share a port of a box by a link, for a browser')
    .description(
      'Shares a port of a box, and prints the address on stdout. By default the members of the workspace who see the box may ' +
        'open it. A port has one link: another audience replaces it. Everything else that is printed is on stderr.',
    )
    .argument('<name>', "the box's name or id")
    .argument('[port]', 'default: the only port on which the box listens', parsePort)
    .addOption(
      new Option('--access <audience>', 'who may open the link').choices(AUDIENCES).conflicts([...AUDIENCES]),
    )
    .addOption(new Option('--members', 'short for --access members').conflicts(['anyone', 'public']))
    .addOption(new Option('--anyone', 'short for --access anyone: the link has a secret').conflicts('public'))
    .option('--public', 'short for --access public: everyone, without a secret; for owners')
    .option(
      '--expires <time>',
      'when a link for anyone or public expires, such as 2h or 30d. Default: 7d',
      createDurationParser('--expires', 'minutes', { min: 5, max: 30 * 24 * 60 }),
    )
    .option('--rewrite-host', 'send `localhost:PORT` as Host and Origin, for servers that check them')
    .option('--no-rewrite-host', 'send the host name of the link as Host (the default)')
    .option('--new', 'end the link of the port, and create a new one')
    .option('--open', 'open the port in a browser')
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box share fig 3000
  box share fig 3000 --open
  box share fig 3000 --anyone --expires 2h
  URL=$(box share -q fig 3000 --public)
  box share fig 5173 --rewrite-host

Who may open the link:
  members   members of the workspace who see the box, after a sign-in. For these links, a second link is printed that
            opens the port once without signing in
  anyone    all who have the link: it has a secret, which is shown only when the link is created
  public    everyone

\`box shares\` lists the links, \`box unshare\` ends one. For a database or another server that is not for browsers, use
\`box forward fig 5432\`.`,
    )
    .action((name: string, port: number | undefined, options: TypedOptions) =>
      runAction(async (session) => {
        const { sharePort } = await import('../shares/share-port.ts')
        return sharePort(session, name, port, { ...options, ...findAccess(options) })
      }),
    )
}

function findAccess(options: TypedOptions): Pick<ShareOptions, 'access'> {
  const access = options.access ?? AUDIENCES.find((audience) => options[audience])
  return access === undefined ? {} : { access }
}
