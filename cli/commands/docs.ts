// box docs: prints the documentation.
import type { Command } from 'commander'
import { suggestNames } from '../arguments/similar-names.ts'
import { boxCommand } from '../command-name.ts'
import type { RunLocalAction } from '../connection/session.ts'
import { getTitle, listTopics, readPage } from '../docs/pages.ts'
import { selectCoordinator } from '../local/select-coordinator.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { print, sanitize } from '../output/print.ts'
import { formatTable } from '../output/table.ts'

export function addDocsCommand(program: Command, runLocalAction: RunLocalAction): void {
  program
    .command('docs')
    .summary('print the documentation')
    .description(
      'Prints a page of the documentation as Markdown. Without a topic, lists the topics, and the URL of the API reference ' +
        'if a coordinator is running.',
    )
    .argument('[topic]', 'the page, such as cli')
    .addHelpText('after', '\nExamples:\n  box docs\n  box docs cli | less')
    .action((topic: string | undefined) =>
      runLocalAction(async () => {
        if (topic === undefined) printTopics()
        else printPage(topic)
        return undefined
      }),
    )
}

function printPage(topic: string): void {
  const topics = listTopics()
  if (!topics.includes(topic))
    throw new CliError(
      EXIT.usage,
      `No such topic: '${sanitize(topic)}'.${suggestTopics(topic, topics)} \`${boxCommand()} docs\` lists the topics.`,
    )
  process.stdout.write(readPage(topic))
}

/** A sentence with a leading space: topics with the word, such as share-domain for share, else similar ones. */
function suggestTopics(word: string, topics: readonly string[]): string {
  const related = topics.filter((topic) => topic.split('-').includes(word))
  return related.length > 0 ? ` Did you mean ${related.join(' or ')}?` : suggestNames(word, topics)
}

function printTopics(): void {
  print(
    formatTable(listTopics().map((topic) => [`${boxCommand()} docs ${topic}`, getTitle(readPage(topic))])),
  )
  const selected = selectCoordinator(process.env, process.cwd())
  const url = selected.isLocal ? selected.running?.url : selected.url
  if (url !== undefined) print(`\nAPI reference: ${url}/docs`)
}
