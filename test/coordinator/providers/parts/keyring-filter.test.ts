// The seccomp filter of kernel keyrings, for the system calls of each processor.
import t from 'tap'
import {
  buildKeyringFilter,
  hasKeyringFilter,
} from '../../../../coordinator/providers/parts/keyring-filter.ts'

const ENOSYS = 0x00050026
const ALLOWED = 0x7fff0000

/** Runs the filter as the kernel does. */
function runFilter(architecture: number, systemCall: number): number {
  const filter = buildKeyringFilter()
  const program = new DataView(filter.buffer)
  let accumulator = 0
  for (let position = 0; position < program.byteLength; position += 8) {
    const operand = program.getUint32(position + 4, true)
    const jump = (isTrue: boolean) => {
      position += 8 * program.getUint8(position + (isTrue ? 2 : 3))
    }
    switch (program.getUint16(position, true)) {
      case 0x20:
        accumulator = operand === 0 ? systemCall : architecture
        break
      case 0x54:
        accumulator = (accumulator & operand) >>> 0
        break
      case 0x15:
        jump(accumulator === operand)
        break
      case 0x25:
        jump(accumulator > operand)
        break
      case 0x35:
        jump(accumulator >= operand)
        break
      case 0x06:
        return operand
      default:
        throw new Error('unknown instruction')
    }
  }
  throw new Error('the filter has no result')
}

const X86_64 = 0xc000003e
/** The number of add_key; request_key and keyctl follow. */
const CASES = [
  { name: 'x86-64', architecture: X86_64, addKey: 248 },
  { name: 'x32', architecture: X86_64, addKey: 0x40000000 + 248 },
  { name: 'i386', architecture: 0x40000003, addKey: 286 },
  { name: 'arm64', architecture: 0xc00000b7, addKey: 217 },
  { name: 'arm', architecture: 0x40000028, addKey: 309 },
  { name: 'riscv64', architecture: 0xc00000f3, addKey: 217 },
]

for (const { name, architecture, addKey } of CASES) {
  t.test(`the system calls of keyrings do not exist on ${name}, and all others are allowed`, (t) => {
    for (const systemCall of [addKey, addKey + 1, addKey + 2])
      t.equal(runFilter(architecture, systemCall), ENOSYS, `${systemCall}`)
    for (const systemCall of [0, addKey - 1, addKey + 3, 0x3fffffff])
      t.equal(runFilter(architecture, systemCall), ALLOWED, `${systemCall}`)
    t.end()
  })
}

t.test('other processors have no filter', (t) => {
  t.equal(hasKeyringFilter('x64'), true)
  t.equal(hasKeyringFilter('s390x'), false)
  t.equal(runFilter(0x80000016, 278), ALLOWED)
  t.end()
})
