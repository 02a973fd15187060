// The path of the dynamic loader in an ELF executable.

const ELF_64_LITTLE_ENDIAN = Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1])
const PT_INTERP = 3

/** Offsets in the header of a 64-bit ELF file, and in its program headers. */
const HEADER = { programHeaders: 0x20, entrySize: 0x36, entryCount: 0x38 }
const ENTRY = { type: 0, offset: 8, fileSize: 0x20 }

type Interpreter = {
  path: string
  /** The position of the path in the file, and the bytes for it, including the NUL at its end. */
  offset: number
  size: number
}

/**
 * @param head the beginning of the file, with its program headers
 * @throws Error when this is no dynamically linked 64-bit little-endian executable
 */
export function findInterpreter(head: Buffer): Interpreter {
  if (!head.subarray(0, ELF_64_LITTLE_ENDIAN.length).equals(ELF_64_LITTLE_ENDIAN))
    throw new Error('The file is no 64-bit little-endian ELF executable.')
  const start = Number(head.readBigUInt64LE(HEADER.programHeaders))
  const entrySize = head.readUInt16LE(HEADER.entrySize)
  for (let index = 0; index < head.readUInt16LE(HEADER.entryCount); index++) {
    const entry = start + index * entrySize
    if (head.readUInt32LE(entry + ENTRY.type) !== PT_INTERP) continue
    const offset = Number(head.readBigUInt64LE(entry + ENTRY.offset))
    const size = Number(head.readBigUInt64LE(entry + ENTRY.fileSize))
    const path = head.subarray(offset, head.indexOf(0, offset)).toString('latin1')
    return { path, offset, size }
  }
  throw new Error('The executable has no dynamic loader.')
}

/** Changes the path of the loader in the executable. @throws Error like findInterpreter(), and when the path is too long */
export function replaceInterpreter(executable: Buffer, path: string): void {
  const { offset, size } = findInterpreter(executable)
  if (Buffer.byteLength(path) >= size) throw new Error(`${path} is longer than the path of the loader.`)
  executable.fill(0, offset, offset + size).write(path, offset)
}
