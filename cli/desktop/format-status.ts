// Formats the state of the desktop of a box.
import type { DesktopStatus } from '../../shared/api/desktop.ts'
import { boxCommand } from '../command-name.ts'
import { sanitize } from '../output/print.ts'

const LABELS: Record<DesktopStatus['programs'][number]['role'], string> = {
  display: 'X server',
  viewer: 'VNC server',
  windowManager: 'window manager',
  terminal: 'terminal',
  browser: 'browser',
}
const LABEL_WIDTH = 16

/** @param pageUrl of the page that shows the desktop */
export function formatStatus(
  { programs, install, session }: DesktopStatus,
  boxName: string,
  pageUrl: string,
): string[] {
  const row = (label: string, text: string) => label.padEnd(LABEL_WIDTH) + sanitize(text)
  const programRows = programs.map(({ role, program, package: name, requiredFor }) => {
    const isOptional = requiredFor.length === 0
    return row(LABELS[role], program ?? `missing${isOptional ? ', optional' : ''} (package ${name})`)
  })
  const hint =
    install.desktop !== null || install.browser !== null
      ? [
          row(
            '',
            `\`${boxCommand()} desktop install ${boxName}${install.desktop === null ? ' --mode browser' : ''}\` installs what is missing, or prints how.`,
          ),
        ]
      : []
  if (session === null) {
    const start = hint.length === 0 ? `; \`${boxCommand()} desktop start ${boxName}\` starts it` : ''
    return [row('state', `not running${start}`), ...programRows, ...hint]
  }
  const { modes, display, authority, width, height, dpi, viewers } = session
  return [
    row('state', `running: ${modes.join(', ') || 'X server only'}`),
    row('page', pageUrl),
    row('display', `${display}, ${width}x${height}, ${dpi} dpi`),
    row('authority', authority),
    row('viewers', String(viewers)),
    ...programRows,
    ...hint,
  ]
}
