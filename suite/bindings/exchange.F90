! Exchange between two ranks in Fortran, by mpi_f08 with -DF08, else by the module mpi. See README.md.
program exchange
#ifdef F08
  use mpi_f08
#else
  use mpi
#endif
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    integer(c_int) function posix_memalign(address, page, bytes) bind(c)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), intent(out) :: address
      integer(c_size_t), value :: page, bytes
    end function
  end interface
  character(9), parameter :: names(5) = ['pingpong ', 'bcast    ', 'allreduce', 'alltoall ', 'barrier  ']
  integer, parameter :: pingpong = 1, bcast = 2, allreduce = 3, alltoall = 4, barrier = 5
  double precision, pointer, contiguous :: out(:), in(:)
  character(MPI_MAX_LIBRARY_VERSION_STRING) :: library
  integer :: rank, size, level, length, error, routine, n, batches

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, size, error)
  call MPI_Query_thread(level, error)
  call MPI_Get_library_version(library, length, error)
  length = scan(library(:length) // new_line('a'), new_line('a')) - 1
  if (rank == 0) print '(a,i0,a,i0,2a)', 'world ', size, ' ', merge(0, 3, level == MPI_THREAD_SINGLE), ' ', library(:length)
  if (size == 2) then
    batches = argument(1)
    call allocate_pages(out, 2 * argument(command_argument_count() - 1))
    call allocate_pages(in, 2 * argument(command_argument_count() - 1))
    do routine = pingpong, alltoall
      do n = 2, command_argument_count(), 2
        call measure(argument(n), argument(n + 1))
      end do
    end do
    routine = barrier
    call measure(0, argument(3))
    if (rank == 0) print '(a)', 'end'
  end if
  call MPI_Finalize(error)

contains

  integer function argument(number)
    integer, intent(in) :: number
    character(20) :: text
    call get_command_argument(number, text)
    read (text, *) argument
  end function

  subroutine allocate_pages(buffer, bytes)
    double precision, pointer, contiguous, intent(out) :: buffer(:)
    integer, intent(in) :: bytes
    type(c_ptr) :: address
    if (posix_memalign(address, 4096_c_size_t, int(bytes, c_size_t)) /= 0) call MPI_Abort(MPI_COMM_WORLD, 1, error)
    call c_f_pointer(address, buffer, [bytes / 8])
  end subroutine

  double precision function value(from, batch, i)
    integer, intent(in) :: from, batch, i
    value = 1 + mod(31 * from + 7 * batch + i, 251)
  end function

  subroutine fill(batch, count)
    integer, intent(in) :: batch, count
    integer :: i
    do i = 1, count
      out(i) = value(rank, batch, i)
      in(i) = merge(out(i), 0d0, routine == bcast .and. rank == 0)
    end do
  end subroutine

  double precision function count_wrong(batch, count)
    integer, intent(in) :: batch, count
    double precision :: first, second, expected
    integer :: i, half
    count_wrong = 0
    half = count / 2
    do i = 1, count
      first = value(0, batch, i)
      second = value(1, batch, i)
      expected = merge(first, second, routine == bcast .or. rank == 1)
      if (routine == allreduce) expected = first + second
      if (routine == alltoall) expected = value((i - 1) / half, batch, rank * half + 1 + mod(i - 1, half))
      if (.not. in(i) == expected) count_wrong = count_wrong + 1
    end do
  end function

  subroutine call_once(count)
    integer, intent(in) :: count
    if (routine == bcast) then
      call MPI_Bcast(in, count, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, error)
    else if (routine == allreduce) then
      call MPI_Allreduce(out, in, count, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
    else if (routine == alltoall) then
      call MPI_Alltoall(out, count / 2, MPI_DOUBLE_PRECISION, in, count / 2, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, error)
    else if (routine == barrier) then
      call MPI_Barrier(MPI_COMM_WORLD, error)
    else if (rank == 0) then
      call MPI_Send(out, count, MPI_DOUBLE_PRECISION, 1, 0, MPI_COMM_WORLD, error)
      call MPI_Recv(in, count, MPI_DOUBLE_PRECISION, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    else
      call MPI_Recv(in, count, MPI_DOUBLE_PRECISION, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
      call MPI_Send(out, count, MPI_DOUBLE_PRECISION, 0, 0, MPI_COMM_WORLD, error)
    end if
  end subroutine

  subroutine measure(bytes, calls)
    integer, intent(in) :: bytes, calls
    double precision :: begin, mine(1), wrong(1), all(1), seconds(0:batches - 1)
    integer :: batch, number, place, count
    count = bytes / 8 * merge(2, 1, routine == alltoall)
    wrong = 0
    do batch = 0, 2 * batches - 1
      call fill(batch, count)
      call MPI_Barrier(MPI_COMM_WORLD, error)
      begin = MPI_Wtime()
      do number = 1, calls
        call call_once(count)
      end do
      mine = (MPI_Wtime() - begin) / calls / merge(2, 1, routine == pingpong)
      place = mod(batch, batches)
      call MPI_Allreduce(mine, seconds(place:place), 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, error)
      wrong = wrong + count_wrong(batch, count)
    end do
    call MPI_Allreduce(wrong, all, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
    if (rank == 0) print '(a,2(1x,i0),*(1x,es12.6e2))', trim(names(routine)), bytes, int(all(1)), seconds
  end subroutine

end program
