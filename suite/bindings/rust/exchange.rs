// Exchange between two ranks in Rust by the crate mpi. See ../README.md.
use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use mpi::Threading;

extern "C" {
    fn posix_memalign(address: *mut *mut f64, page: usize, bytes: usize) -> i32;
}

const PINGPONG: &str = "pingpong";
const BCAST: &str = "bcast";
const ALLREDUCE: &str = "allreduce";
const ALLTOALL: &str = "alltoall";
const BARRIER: &str = "barrier";

fn allocate_pages(bytes: usize) -> &'static mut [f64] {
    let mut address = std::ptr::null_mut();
    unsafe {
        assert_eq!(posix_memalign(&mut address, 4096, bytes), 0);
        std::ptr::write_bytes(address as *mut u8, 0, bytes);
        std::slice::from_raw_parts_mut(address, bytes / 8)
    }
}

fn value(from: i32, batch: usize, i: usize) -> f64 {
    (1 + (31 * from as usize + 7 * batch + i) % 251) as f64
}

fn fill(routine: &str, rank: i32, batch: usize, out: &mut [f64], buffer: &mut [f64]) {
    for i in 0..out.len() {
        out[i] = value(rank, batch, i);
        buffer[i] = if routine == BCAST && rank == 0 { out[i] } else { 0.0 };
    }
}

fn count_wrong(routine: &str, rank: i32, batch: usize, received: &[f64]) -> f64 {
    let half = received.len() / 2;
    let expected = |i: usize| match (value(0, batch, i), value(1, batch, i)) {
        _ if routine == ALLTOALL => value((i / half) as i32, batch, rank as usize * half + i % half),
        (first, second) if routine == ALLREDUCE => first + second,
        (first, second) => if routine == BCAST || rank == 1 { first } else { second },
    };
    received.iter().enumerate().filter(|(i, each)| **each != expected(*i)).count() as f64
}

fn call(world: &SimpleCommunicator, routine: &str, rank: i32, out: &[f64], buffer: &mut [f64]) {
    if routine == BCAST {
        world.process_at_rank(0).broadcast_into(buffer);
    } else if routine == ALLREDUCE {
        world.all_reduce_into(out, buffer, SystemOperation::sum());
    } else if routine == ALLTOALL {
        world.all_to_all_into(out, buffer);
    } else if routine == BARRIER {
        world.barrier();
    } else if rank == 0 {
        world.process_at_rank(1).send(out);
        world.process_at_rank(1).receive_into(buffer);
    } else {
        world.process_at_rank(0).receive_into(buffer);
        world.process_at_rank(0).send(out);
    }
}

fn reduce(world: &SimpleCommunicator, mine: f64, operation: SystemOperation) -> f64 {
    let mut all = 0.0;
    world.all_reduce_into(&mine, &mut all, operation);
    all
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<usize> = words.iter().map(|each| each.parse().unwrap()).collect();
    let (universe, level) = mpi::initialize_with_threading(Threading::Single).unwrap();
    let world = universe.world();
    let (rank, batches) = (world.rank(), numbers[0]);
    if rank == 0 {
        let library = mpi::environment::library_version().unwrap();
        let level = if level == Threading::Single { 0 } else { 3 };
        println!("world {} {} {}", world.size(), level, library.lines().next().unwrap());
    }
    if world.size() != 2 {
        return;
    }
    let largest = 2 * numbers[numbers.len() - 2];
    let (all_out, all_in) = (allocate_pages(largest), allocate_pages(largest));
    for routine in [PINGPONG, BCAST, ALLREDUCE, ALLTOALL, BARRIER] {
        let alone = [0, numbers[2]];
        let cases = if routine == BARRIER { &alone[..] } else { &numbers[1..] };
        for case in cases.chunks(2) {
            let (bytes, calls) = (case[0], case[1]);
            let count = bytes / 8 * if routine == ALLTOALL { 2 } else { 1 };
            let (out, buffer) = (&mut all_out[..count], &mut all_in[..count]);
            let (mut seconds, mut wrong) = (vec![0.0; batches], 0.0);
            for batch in 0..2 * batches {
                fill(routine, rank, batch, out, buffer);
                world.barrier();
                let begin = mpi::time();
                for _ in 0..calls {
                    call(&world, routine, rank, out, buffer);
                }
                let halves = if routine == PINGPONG { 2.0 } else { 1.0 };
                let mine = (mpi::time() - begin) / calls as f64 / halves;
                seconds[batch % batches] = reduce(&world, mine, SystemOperation::max());
                wrong += count_wrong(routine, rank, batch, buffer);
            }
            wrong = reduce(&world, wrong, SystemOperation::sum());
            if rank == 0 {
                let times: Vec<String> = seconds.iter().map(|each| format!("{each:.6e}")).collect();
                println!("{routine} {bytes} {wrong} {}", times.join(" "));
            }
        }
    }
    if rank == 0 {
        println!("end");
    }
}
