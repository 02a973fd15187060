// The lines of the log: names of boxes, errors, and the form for people.
import t from 'tap'
import { createLoggerFor } from '../../../../coordinator/base/log/logger.ts'
import { createLineFormatter } from '../../../../coordinator/base/log/pretty-line.ts'
import { PermanentProviderError } from '../../../../coordinator/providers/provider.ts'
import { ApiError } from '../../../../shared/errors.ts'

const BOX_ID = '0f8b6a3e-1111-4222-8333-444455556666'
const COMMAND_ID = 'p_8b49a1c0d2e3f4a5b6c7d8e9'

function createLog(format?: (line: string) => string) {
  let text = ''
  const write = (bytes: Uint8Array) => {
    text += Buffer.from(bytes).toString()
    return bytes.length
  }
  const boxNames = new Map<string, string>()
  const log = createLoggerFor(write, { level: 'info', boxNames, format })
  return { log, boxNames, readText: () => text, readLines: () => text.trimEnd().split('\n') }
}

const plain = createLineFormatter({ hasColors: () => false })

t.test('a line of JSON has the name of the box beside its id', async (t) => {
  const { log, boxNames, readLines } = createLog()
  log.info({ boxId: BOX_ID }, 'before the name is known')
  boxNames.set(BOX_ID, 'fig')
  log.info({ boxId: BOX_ID }, 'box woken')
  const [before, after] = readLines().map((line) => JSON.parse(line))
  t.match(before, { boxId: BOX_ID, box: undefined })
  t.match(after, { level: 30, box: 'fig', boxId: BOX_ID, msg: 'box woken', time: Number })
})

t.test('only unexpected errors have a stack', async (t) => {
  const { log, readLines } = createLog()
  log.warn({ err: new ApiError('box_unreachable', 'The box does not respond.') }, 'expected')
  log.warn({ err: new PermanentProviderError('No isolation level works.') }, 'expected')
  log.error({ err: new ApiError('internal_error', 'x', { cause: new TypeError('bug') }) }, 'caused by a bug')
  log.error({ err: new TypeError('bug') }, 'a bug')
  const [api, provider, caused, bug] = readLines().map((line) => JSON.parse(line).err)
  t.same(api, { code: 'box_unreachable', message: 'The box does not respond.' })
  t.same(provider, { message: 'No isolation level works.' })
  t.match(caused.cause.stack, /TypeError: bug\n +at /)
  t.match(bug.stack, /TypeError: bug\n +at /)
})

t.test('on a terminal an event is one short line', async (t) => {
  const { log, boxNames, readLines } = createLog(plain)
  boxNames.set(BOX_ID, 'fig')
  log.info({ boxId: BOX_ID, actor: `user:usr_${'ab12'.repeat(6)}`, durationMs: 612 }, 'box woken')
  log.info({ boxId: BOX_ID, commandId: COMMAND_ID, mode: 'sync' }, 'command requested')
  log.warn({ boxId: 'c0ffee00-1111-4222-8333-444455556666', reason: 'no space left' }, 'rejected')
  log.warn({ err: new ApiError('box_unreachable', 'The box does not respond.') }, 'request rejected')
  log.info('ready')
  const time = String.raw`^\d\d:\d\d:\d\d `
  t.match(readLines(), [
    new RegExp(`${time}INFO: box woken box=fig actor=user:usr_ab12ab took=0.6s$`),
    new RegExp(`${time}INFO: command requested box=fig commandId=p_8b49a1 mode=sync$`),
    new RegExp(`${time}WARN: rejected boxId=c0ffee00 reason="no space left"$`),
    new RegExp(`${time}WARN: request rejected error="The box does not respond." code=box_unreachable$`),
    new RegExp(`${time}INFO: ready$`),
  ])
})

t.test('on a terminal an unexpected error has an indented stack', async (t) => {
  const { log, readText } = createLog(plain)
  log.error({ err: new TypeError('bug') }, 'request failed')
  t.match(readText(), /ERROR: request failed \n {4}TypeError: bug\n {8}at /)
})

t.test('colours only where the terminal has them', async (t) => {
  const coloured = createLog(createLineFormatter({ hasColors: () => true }))
  coloured.log.warn('message')
  t.match(coloured.readText(), '\u001b[33mWARN\u001b[39m')
  const monochrome = createLog(plain)
  monochrome.log.warn('message')
  t.notMatch(monochrome.readText(), '\u001b')
})

t.test('text from a box cannot control the terminal', async (t) => {
  const { log, readText } = createLog(plain)
  const evil = 'a\u001b]0;title\u0007\u009b2J\u202eb\r'
  const error = new TypeError(evil)
  log.warn({ reason: evil, nested: { evil }, [evil]: 1, err: new ApiError('exec_failed', evil) }, evil)
  log.warn({ err: error }, 'stack')
  t.notMatch(readText().replaceAll('\n', ''), /[\p{Cc}\p{Cf}]/u)
  t.match(readText(), 'title')
})
