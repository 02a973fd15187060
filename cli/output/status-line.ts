// Shows the progress of a state change on stderr: one changing line on a terminal, else one line for each state.
import { printStderr } from './print.ts'

/**
 * `none`: nothing; `lines`: one changing line, or one line for each state without a terminal; `terminal`: as `lines`, but
 * nothing without a terminal.
 */
export type Progress = 'none' | 'lines' | 'terminal'

/** Returns how a command with the options --json and --quiet shows its progress. */
export const getProgress = ({ json, quiet }: { json?: boolean; quiet?: boolean }): Progress =>
  json || quiet ? 'none' : 'lines'

/** The same rule as in yocto-spinner. Where it is false, lines are printed, without cursor movements. */
export const hasStatusLine = (): boolean =>
  process.stderr.isTTY && process.env.TERM !== 'dumb' && !('CI' in process.env)

/** Runs `action` with a function that shows a text. The changing line is removed at the end. */
export async function showStatus<T>(
  progress: Progress,
  action: (update: (text: string) => void) => Promise<T>,
): Promise<T> {
  if (progress === 'none' || (progress === 'terminal' && !hasStatusLine())) return action(() => undefined)
  if (!hasStatusLine()) {
    let lastText = ''
    return action((text) => {
      if (text !== lastText) printStderr(text)
      lastText = text
    })
  }
  // Imported here: most commands do not wait.
  const { default: createSpinner } = await import('yocto-spinner')
  // main.ts handles the signals: they abort the action, which removes the line.
  const spinner = createSpinner({ stream: process.stderr, handleSignals: false })
  try {
    return await action((text) => {
      if (spinner.isSpinning) spinner.text = text
      else spinner.start(text)
    })
  } finally {
    spinner.stop()
  }
}
