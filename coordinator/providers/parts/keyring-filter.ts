// The seccomp filter of boxes, in which the system calls of kernel keyrings fail. Keyrings belong to users and sessions, not
// to namespaces: without the filter, boxes share them with the coordinator and with each other.

/** A classic BPF instruction: struct sock_filter of linux/filter.h. */
type Instruction = [code: number, jumpTrue: number, jumpFalse: number, operand: number]

const LOAD_WORD = 0x20
const AND = 0x54
const JUMP_EQUAL = 0x15
const JUMP_GREATER = 0x25
const JUMP_GREATER_OR_EQUAL = 0x35
const RETURN = 0x06
/** Offsets in struct seccomp_data. */
const SYSTEM_CALL = 0
const ARCHITECTURE = 4
const ALLOW = 0x7fff0000
/** ENOSYS: container runtimes, and other programs that use keyrings where they exist, ignore this error. */
const FAIL = 0x00050000 | 38
/** Set in the numbers of the x32 ABI, which has the architecture of x86-64. */
const X32_BIT = 0x40000000

/** AUDIT_ARCH_* of linux/audit.h. add_key, request_key and keyctl have consecutive numbers. */
const ARCHITECTURES: readonly { id: number; addKey: number }[] = [
  { id: 0xc000003e, addKey: 248 }, // x86-64
  { id: 0x40000003, addKey: 286 }, // i386
  { id: 0xc00000b7, addKey: 217 }, // arm64
  { id: 0x40000028, addKey: 309 }, // arm
  { id: 0xc00000f3, addKey: 217 }, // riscv64
]
/** Node's names of the processors, whose 32-bit system calls are in the filter too. */
const PROCESSORS: readonly string[] = ['x64', 'ia32', 'arm64', 'arm', 'riscv64']

/** False: the filter would have no effect. */
export const hasKeyringFilter = (arch: string = process.arch): boolean => PROCESSORS.includes(arch)

/** The filter as the kernel reads it, for every processor. */
export function buildKeyringFilter(): Uint8Array {
  const groups = ARCHITECTURES.flatMap(({ id, addKey }): Instruction[] => {
    const group: Instruction[] = [
      [LOAD_WORD, 0, 0, SYSTEM_CALL],
      [AND, 0, 0, ~X32_BIT >>> 0],
      [JUMP_GREATER_OR_EQUAL, 0, 2, addKey],
      [JUMP_GREATER, 1, 0, addKey + 2],
      [RETURN, 0, 0, FAIL],
      [RETURN, 0, 0, ALLOW],
    ]
    return [[JUMP_EQUAL, 0, group.length, id], ...group]
  })
  const program: Instruction[] = [[LOAD_WORD, 0, 0, ARCHITECTURE], ...groups, [RETURN, 0, 0, ALLOW]]
  const bytes = new DataView(new ArrayBuffer(program.length * 8))
  for (const [index, [code, jumpTrue, jumpFalse, operand]] of program.entries()) {
    bytes.setUint16(index * 8, code, true)
    bytes.setUint8(index * 8 + 2, jumpTrue)
    bytes.setUint8(index * 8 + 3, jumpFalse)
    bytes.setUint32(index * 8 + 4, operand, true)
  }
  return new Uint8Array(bytes.buffer)
}
