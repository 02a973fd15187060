// Tests a terminal of the dashboard while its program prints without an end.
import { readFileSync } from 'node:fs'
import type { BrowserContext } from 'playwright-core'
import type { Test } from 'tap'
import { LONG_DEADLINE_MS, waitUntil } from './wait-until.ts'

const MIB = 1024 * 1024
/** A page that does not answer a script for this long does not respond to its user. */
const RESPONSIVE_MS = 3000
const PART_BYTES = 128 * MIB
/** Each line is its number with this many digits. */
const DIGITS = 199
const PRINT = `awk 'BEGIN { for (i = 1; ; i++) printf "%0${DIGITS}d\\n", i }'`
/** Prints until a line is typed, and then until Ctrl-C. */
const FLOOD = `${PRINT} & read -r line; kill $!; wait; trap 'echo interrupted' INT; echo "typed $line"; ${PRINT}; exec cat`

export type TerminalFlood = {
  context: BrowserContext
  /** The URL of the page of the box. */
  base: string
  /** The process of the coordinator. */
  pid: number
  bytes: number
}

/** The memory of page and coordinator does not depend on the printed bytes, and keys arrive while the program prints. */
export async function testTerminalFlood(t: Test, options: TerminalFlood): Promise<void> {
  const { context, base, pid, bytes } = options
  const page = await context.newPage()
  await page.setViewportSize({ width: 1400, height: 800 })
  await page.goto(`${base}/terminals`)
  const session = await context.newCDPSession(page)
  await session.send('Performance.enable')
  const measure = async () => {
    await session.send('HeapProfiler.collectGarbage')
    const { metrics } = await session.send('Performance.getMetrics')
    const heap = metrics.find(({ name }) => name === 'JSHeapUsedSize')?.value ?? Number.NaN
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    return { heap, resident: Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) * 1024 }
  }
  const readText = () =>
    page.evaluate<string>("document.querySelector('.xterm-rows').textContent.replaceAll('\\u00a0', ' ')")
  /** The printed bytes, from the numbers on the screen. */
  const readPrinted = async () => {
    const numbers = (await readText()).matchAll(/0{50,}(\d+?)(?=0{50,}|$)/g)
    return Math.max(0, ...[...numbers].map(([, digits]) => Number(digits))) * (DIGITS + 1)
  }
  const waitForBytes = (wanted: number) =>
    waitUntil(`${wanted} bytes are shown`, async () => (await readPrinted()) > wanted, LONG_DEADLINE_MS)

  await page.getByLabel('Name').fill('flood')
  await page.getByLabel('Program').fill(FLOOD)
  await page.keyboard.press('Enter')
  await page.getByText('Connected.').waitFor()
  // The scrollback is full.
  await waitForBytes(8 * MIB)
  const before = await measure()
  // Each part has a deadline.
  for (let shown = PART_BYTES; shown < bytes; shown += PART_BYTES) await waitForBytes(shown)
  await waitForBytes(bytes)
  const after = await measure()
  t.ok(after.heap - before.heap < 16 * MIB, `the page has grown by ${after.heap - before.heap} bytes`)
  const growth = after.resident - before.resident
  t.ok(growth < 64 * MIB, `the coordinator has grown by ${growth} bytes`)
  const start = performance.now()
  await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))')
  const ms = performance.now() - start
  t.ok(ms < RESPONSIVE_MS, `the page responds after ${ms.toFixed(0)} ms while the program prints`)

  await page.locator('.xterm-helper-textarea').focus()
  await page.keyboard.type('hello\n')
  await waitUntil('the program prints from the start', async () => {
    const printed = await readPrinted()
    return printed > 0 && printed < bytes / 2
  })
  await page.keyboard.press('Control+c')
  await page.locator('.xterm-rows').getByText('interrupted').waitFor()
  await page.keyboard.type('echoed\n')
  await waitUntil('the program echoes it', async () => (await readText()).split('echoed').length === 3)
}
