// box exec on a terminal does not forward the terminal: programs that wait for input would end without a message.
import { boxCommand } from '../command-name.ts'
import { printMessage, sanitize } from '../output/print.ts'

/** Without arguments these programs read commands or text from stdin. */
const READERS = new Set(
  'bash sh dash zsh fish ksh python python3 ipython node psql sqlite3 bc cat'.split(' '),
)

/** @param args the words of the command */
export function printInteractiveHint(name: string, args: readonly string[]): void {
  const [program = ''] = args
  if (args.length !== 1 || !READERS.has(program.slice(program.lastIndexOf('/') + 1))) return
  printMessage(
    'note: without -i or -t, the command does not read from this terminal. For a terminal: ' +
      `${boxCommand()} exec -it ${sanitize(name)} ${program}`,
  )
}
