// The page of the files of a box: a directory, or a file in it.
import type { Box } from '../../shared/api/boxes.ts'
import { getBoxFiles } from '../data/box-files.ts'
import { parseFilesQuery } from '../data/files.ts'
import { query } from '../data/navigation.ts'
import { DirectoryView } from '../views/files/directory.tsx'
import { FileView } from '../views/files/file.tsx'
import { UploadList } from '../views/files/upload-list.tsx'
import { NotRunning } from '../views/not-running.tsx'

export function FilesPage({ box }: { box: Box }) {
  const { path, file } = parseFilesQuery(query.value)
  if (box.observedState !== 'running') return <NotRunning box={box} subject="Files" />
  return (
    <>
      <UploadList boxFiles={getBoxFiles(box.id)} />
      {file === null ? (
        <DirectoryView key={`${box.id} ${path}`} box={box} path={path} />
      ) : (
        <FileView key={`${box.id} ${path} ${file}`} box={box} directory={path} name={file} />
      )}
    </>
  )
}
