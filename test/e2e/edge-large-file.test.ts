// Uploads and downloads 256 MiB.
import t from 'tap'
import { testLargeFile } from '../support/large-file.ts'

t.test('uploads and downloads 256 MiB in constant memory', (t) => testLargeFile(t, 256))
