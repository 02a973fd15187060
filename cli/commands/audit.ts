// box audit: lists the audit log, verifies its hash chain, and configures its delivery.
import { type Command, Option } from 'commander'
import { AUDIT_ORIGINS, AUDIT_SINK_STARTS } from '../../shared/field-values.ts'
import {
  createIntegerParser,
  createJsonOption,
  createQuietOption,
  type JsonOption,
} from '../arguments/options.ts'
import type { AuditOptions } from '../audit/audit-list.ts'
import type { VerifyOptions } from '../audit/verify.ts'
import type { RunAction } from '../connection/session.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'

export function addAuditCommand(program: Command, runAction: RunAction): void {
  const audit = program
    .command('audit')
    .summary('show the audit log, and verify it')
    .description(
      'Shows the events of the audit log, oldest first: who changed what, and when. For owners and members. Shows the last ' +
        '50 events, or with --since or --until all of that time.',
    )
    .option('--since <time>', 'events since this time: 2h, 03:14, 2026-01-31T09:30')
    .option('--until <time>', 'events before this time')
    .option('--kind <kinds>', 'only these kinds, such as key.create,key.revoke; can be repeated', collect)
    .option('--box <name>', 'only events of this box; also of a deleted one')
    .option(
      '--actor <user>',
      'only events of this user: an email address, a name, an id, or another text of the column ACTOR',
    )
    .addOption(
      new Option('--origin <origin>', 'recorded by the coordinator, or reported by a client').choices(
        AUDIT_ORIGINS,
      ),
    )
    .option(
      '-n, --tail <count>',
      'show only the last events',
      createIntegerParser('--tail', { min: 0, max: 1_000_000 }),
    )
    .option('-f, --follow', 'print further events until Ctrl-C')
    .addOption(
      new Option('--csv [file]', 'write CSV with all columns to the file, or to stdout').conflicts([
        'follow',
        'json',
        'output',
        'tail',
      ]),
    )
    .addOption(
      new Option('-o, --output <format>', 'wide adds columns').choices(['table', 'wide', 'json', 'name']),
    )
    .addOption(createJsonOption('short for -o json').conflicts('output'))
    .option('--no-header', 'omit the header of the table')
    // An option after a subcommand belongs to the subcommand.
    .enablePositionalOptions()
    .helpCommand(false)
    .addHelpText(
      'after',
      `
Examples:
  box audit --since 2h
  box audit --kind key.create,key.revoke --actor ada@example.com
  box audit --box fig -f
  box audit --since 30d --csv audit.csv
  box audit verify

\`box docs audit\` lists the kinds. Commands are not events: \`box history\` lists them. The CSV has the newest events first, at most 50,000. The download is an event of the audit log itself.`,
    )
    .action((options: AuditOptions) =>
      runAction(async (session) => {
        if (options.follow && options.until !== undefined)
          throw new CliError(EXIT.usage, '--follow and --until exclude each other.')
        return (await import('../audit/audit-list.ts')).showAudit(session, options)
      }),
    )
  addVerify(audit, runAction)
  addSink(audit, runAction)
}

const collect = (text: string, previous: string[] = []): string[] => [...previous, ...text.split(',')]

function addVerify(audit: Command, runAction: RunAction): void {
  audit
    .command('verify')
    .summary('verify that no event was changed or removed')
    .description(
      'Reads the hash chain of the audit log and verifies it on this machine: no event was changed, removed or inserted. ' +
        'Prints the head of the chain. A person who can write to the database can also compute a new chain: keep the head ' +
        'elsewhere, and pass it to --head next time.',
    )
    .option('--head <id:hash>', 'the head of an earlier verification, which must be part of the chain')
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Exit codes: 0 when the chain is intact, 1 when it is broken.

Examples:
  box audit verify
  box audit verify --json | jq -r '.head | "\\(.id):\\(.hash)"' >head.txt
  box audit verify --head "$(cat head.txt)"`,
    )
    .action(({ head, ...options }: Omit<VerifyOptions, 'head'> & { head?: string }) =>
      runAction(async (session) => {
        const { parseHead, verifyAudit } = await import('../audit/verify.ts')
        return verifyAudit(session, { ...options, ...(head !== undefined && { head: parseHead(head) }) })
      }),
    )
}

type Output = JsonOption & { quiet?: boolean }
const importSink = () => import('../audit/sink.ts')

function addSink(audit: Command, runAction: RunAction): void {
  const sink = audit
    .command('sink')
    .summary('show or set the endpoint that receives the events')
    .description(
      'Shows the HTTPS endpoint that receives the events of the audit log, and the state of the delivery. For owners, with a ' +
        'sign-in.',
    )
    .addOption(createJsonOption())
    .enablePositionalOptions()
    .helpCommand(false)
    .action((options: Output) =>
      runAction(async (session) => (await importSink()).showSink(session, options)),
    )
  sink
    .command('set')
    .summary('deliver the events to an HTTPS endpoint')
    .description(
      'Delivers the events to an HTTPS endpoint, and prints the secret that signs the deliveries on stdout.',
    )
    .argument('<url>', 'the endpoint')
    .addOption(
      new Option('--from <event>', 'the first event: now, or start for the oldest stored one').choices(
        AUDIT_SINK_STARTS,
      ),
    )
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .action((url: string, options: Output & { from?: 'now' | 'start' }) =>
      runAction(async (session) => (await importSink()).setSink(session, url, options)),
    )
  sink
    .command('rm')
    .aliases(['remove', 'delete'])
    .summary('stop the delivery')
    .description('Stops the delivery of the events. On a terminal, asks for confirmation.')
    .option('-y, --yes', 'do not ask for confirmation')
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .action((options: Output & { yes?: boolean }) =>
      runAction(async (session) => (await importSink()).removeSink(session, options)),
    )
}
