// A pass-through stream that fails when more than a number of bytes pass through it.
import { Transform } from 'node:stream'
import { ApiError } from '../../shared/errors.ts'

export function boundedBytes(limit: number): Transform {
  let size = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.length
      if (size > limit)
        done(
          new ApiError(
            'payload_too_large',
            `The body is larger than ${limit} bytes. Split it into several transfers.`,
          ),
        )
      else done(null, chunk)
    },
  })
}
